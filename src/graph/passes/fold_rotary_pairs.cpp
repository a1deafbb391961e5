#include "graph/passes/fold_rotary_pairs.h"

#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

bool is_unknown_dim(const Dim& dim) { return dim.is_symbol() && dim.symbol() == "?"; }

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph), uses_(graph) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "Add" && graph_.nodes[i].domain.empty()) fold(i);
    uses_.sweep();
  }

 private:
  std::optional<int64_t> number(ValueId id) const {
    const Tensor* t = constant_of(graph_, id);
    if (!t || t->count() != 1 || t->dtype != DType::i64) return std::nullopt;
    return *t->as<int64_t>();
  }

  // Whether `id` is x[..., first : first + count * step : step] of the last axis.
  bool is_part(ValueId id, ValueId x, int64_t first, int64_t count, int64_t step) const {
    const Node* slice = uses_.maker(id, "Slice");
    if (!slice || slice->inputs[0] != x || slice->inputs.size() < 3) return false;
    const Shape *from = shape_of(graph_, x), *to = shape_of(graph_, id);
    if (!from || !to || from->rank() != to->rank() || to->dims().back() != Dim(count)) return false;
    const auto axis = number(slice->input(3));
    const auto rank = static_cast<int64_t>(from->rank());
    if (!axis || (*axis != -1 && *axis != rank - 1)) return false;
    const auto steps =
        slice->input(4) == kNoValue ? std::optional<int64_t>(1) : number(slice->input(4));
    return number(slice->inputs[1]) == first && steps == step;
  }

  // Behind an Unsqueeze that adds the last axis.
  ValueId before_unsqueeze(ValueId id) const {
    const Node* node = uses_.maker(id, "Unsqueeze");
    const Shape* shape = shape_of(graph_, id);
    return node && shape && shape->dims().back() == Dim(1) ? node->inputs[0] : kNoValue;
  }

  // Whether `id` is interleave(-x[1::2], x[0::2]), x having `depth` elements in its last axis.
  bool is_turned(ValueId id, ValueId x, int64_t depth) const {
    const Node* reshape = uses_.maker(id, "Reshape");
    const Node* joined = reshape ? uses_.maker(reshape->inputs[0], "Concat") : nullptr;
    const Shape *from = shape_of(graph_, x), *to = shape_of(graph_, id);
    if (!joined || joined->inputs.size() != 2 || !to || !(*from == *to)) return false;
    for (const Dim& dim : *from)
      if (is_unknown_dim(dim)) return false;
    const int64_t axis = joined->attributes.integer("axis");
    if (axis != -1 && axis != static_cast<int64_t>(from->rank())) return false;
    const Node* negated = uses_.maker(before_unsqueeze(joined->inputs[0]), "Neg");
    const ValueId even = before_unsqueeze(joined->inputs[1]);
    return negated && even != kNoValue && is_part(negated->inputs[0], x, 1, depth / 2, 2) &&
           is_part(even, x, 0, depth / 2, 2);
  }

  // A table for x [batch, heads, rows, depth]: [1, 1, rows, depth].
  bool is_table(ValueId id, const Shape& x) const {
    const Shape* t = shape_of(graph_, id);
    return t && is_f32(graph_, id) && t->rank() == 4 && (*t)[0] == Dim(1) && (*t)[1] == Dim(1) &&
           (*t)[2] == x[2] && (*t)[3] == x[3];
  }

  void fold(size_t index) {
    const Node& sum = graph_.nodes[index];
    for (size_t side = 0; side < 2; ++side) {
      const Node* straight = uses_.maker(sum.inputs[side], "Mul");
      const Node* turned = uses_.maker(sum.inputs[1 - side], "Mul");
      if (!straight || !turned) return;
      for (size_t s = 0; s < 4; ++s) {
        const ValueId x = straight->inputs[s / 2], cos = straight->inputs[1 - s / 2];
        const ValueId r = turned->inputs[s % 2], sin = turned->inputs[1 - s % 2];
        const Shape* shape = shape_of(graph_, x);
        if (!shape || shape->rank() != 4 || !is_f32(graph_, x) || (*shape)[3].is_symbol()) continue;
        const int64_t depth = (*shape)[3].value();
        if (depth % 2 != 0 || !is_table(cos, *shape) || !is_table(sin, *shape) ||
            !is_turned(r, x, depth))
          continue;
        replace(index, x, cos, sin, depth);
        return;
      }
    }
  }

  void replace(size_t index, ValueId x, ValueId cos, ValueId sin, int64_t depth) {
    ValueId whole = x;
    // The rest of the axis, where the result is joined with it again.
    const size_t reader = uses_.only_reader(graph_.nodes[index].outputs[0]);
    if (const Node* slice = uses_.maker(x, "Slice"); slice && reader != ValueUses::kNone) {
      const Node& joined = graph_.nodes[reader];
      const Shape* shape = shape_of(graph_, slice->inputs[0]);
      if (joined.op == "Concat" && joined.domain.empty() && joined.inputs.size() == 2 &&
          joined.inputs[0] == graph_.nodes[index].outputs[0] && shape && shape->rank() == 4 &&
          !(*shape)[3].is_symbol() &&
          (joined.attributes.integer("axis") == -1 || joined.attributes.integer("axis") == 3) &&
          is_part(x, slice->inputs[0], 0, depth, 1) &&
          is_part(joined.inputs[1], slice->inputs[0], depth, (*shape)[3].value() - depth, 1)) {
        whole = slice->inputs[0];
        ValueUses::remove(graph_.nodes[index]);
        index = reader;
      }
    }
    Node& last = graph_.nodes[index];
    last = Node{.op = "RotaryPairs",
                .domain = "hologram",
                .name = last.name,
                .inputs = {whole, cos, sin},
                .outputs = last.outputs};
  }

  Graph& graph_;
  ValueUses uses_;
};

}  // namespace

void fold_rotary_pairs(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) fold_rotary_pairs(*sub.graph);
  Folder(graph).run();
}

}  // namespace hologram::graph
