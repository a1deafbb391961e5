#include "graph/passes/fold_rotary.h"

#include "graph/passes/strided_view.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph), uses_(graph) {}

  Status run() {
    std::vector<std::vector<Node>> made(graph_.nodes.size());
    bool any = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op != "Add" || !graph_.nodes[i].domain.empty()) continue;
      HOLOGRAM_TRY(made[i], fold(graph_.nodes[i]));
      any |= !made[i].empty();
    }
    if (!any) return {};
    std::vector<Node> nodes;
    for (size_t i = 0; i < made.size(); ++i) {
      if (made[i].empty()) {
        nodes.push_back(std::move(graph_.nodes[i]));
        continue;
      }
      for (Node& node : made[i]) nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
    return {};
  }

 private:
  // The operand of a Mul that is not a constant, and the constant.
  struct Scaled {
    ValueId x;
    const Tensor* by;
  };
  std::optional<Scaled> scaled(ValueId id) const {
    const Node* mul = uses_.maker(id, "Mul");
    for (size_t side = 0; mul && side < 2; ++side)
      if (const Tensor* t = constant_of(graph_, mul->inputs[1 - side]); t && t->dtype == DType::f32)
        return Scaled{mul->inputs[side], t};
    return std::nullopt;
  }
  // Whether `id` is elements [first, first + half) of the last axis of x.
  bool is_part(ValueId id, ValueId x, int64_t first, int64_t half) const {
    const Node* slice = uses_.maker(id, "Slice");
    if (!slice || slice->inputs[0] != x) return false;
    const Shape *from = shape_of(graph_, x), *to = shape_of(graph_, id);
    if (!from || !to || from->rank() != to->rank() || to->dims().back() != Dim(half)) return false;
    for (size_t i = 0; i + 1 < from->rank(); ++i)
      if ((*from)[i] != (*to)[i]) return false;
    const Tensor* start = constant_of(graph_, slice->inputs[1]);
    const Tensor* steps = constant_of(graph_, slice->input(4));
    return start && start->dtype == DType::i64 && start->count() == 1 &&
           *start->as<int64_t>() == first && (!steps || *steps->as<int64_t>() == 1);
  }

  // cos or sin [1, 1, rows, depth], as [rows, depth].
  static std::optional<Tensor> table_of(const Tensor& t, int64_t rows, int64_t depth) {
    if (t.count() != rows * depth || t.dims.rank() < 2 || t.dims.back() != depth ||
        t.dims[t.dims.rank() - 2] != rows)
      return std::nullopt;
    Tensor table = t;
    table.dims = {rows, depth};
    return table;
  }

  // The nodes that replace the sum; none where it is something else.
  Result<std::vector<Node>> fold(const Node& sum) {
    for (size_t side = 0; side < 2; ++side) {
      const auto straight = scaled(sum.inputs[side]), turned = scaled(sum.inputs[1 - side]);
      const Node* joined = turned ? uses_.maker(turned->x, "Concat") : nullptr;
      if (!straight || !joined || joined->inputs.size() != 2) continue;
      const ValueId x = straight->x;
      const Shape* shape = shape_of(graph_, x);
      if (!shape || shape->rank() != 4 || !shape->is_static() || !is_f32(graph_, x)) continue;
      const int64_t heads = (*shape)[1].value(), rows = (*shape)[2].value();
      const int64_t depth = (*shape)[3].value(), half = depth / 2;
      const int64_t axis = joined->attributes.integer("axis");
      const Node* negated = uses_.maker(joined->inputs[0], "Neg");
      if ((*shape)[0].value() != 1 || depth % 2 != 0 || (axis != 3 && axis != -1) || !negated ||
          !is_part(negated->inputs[0], x, half, half) || !is_part(joined->inputs[1], x, 0, half))
        continue;
      const auto view = trace_view(graph_, uses_, x);
      if (!view || view->offset != 0 || view->scale != 1 || !spans(*view, heads, rows, depth))
        continue;
      auto cos = table_of(*straight->by, rows, depth), sin = table_of(*turned->by, rows, depth);
      if (!cos || !sin) continue;
      return nodes_for(sum, view->root, heads, rows, depth, *std::move(cos), *std::move(sin));
    }
    return std::vector<Node>();
  }

  // The root is [1, rows, heads * depth] and x all of it.
  bool spans(const StridedView& view, int64_t heads, int64_t rows, int64_t depth) const {
    const Shape* root = shape_of(graph_, view.root);
    if (!root || !(*root == Shape{1, rows, heads * depth}) || !view.axes[0].empty()) return false;
    const auto is = [](const std::vector<StridedView::Factor>& f, int64_t size, int64_t stride) {
      return size == 1 ? f.empty()
                       : f.size() == 1 && f[0].size == Dim(size) && f[0].stride == stride;
    };
    return is(view.axes[1], heads, depth) && is(view.axes[2], rows, heads * depth) &&
           is(view.axes[3], depth, 1);
  }

  std::vector<Node> nodes_for(const Node& sum, ValueId root, int64_t heads, int64_t rows,
                              int64_t depth, Tensor cos, Tensor sin) {
    const std::string name = graph_.value(sum.outputs[0]).name;
    const auto value = [&](const char* suffix, Shape shape) {
      return graph_.add_value(name + suffix, ValueType::tensor(DType::f32, std::move(shape)));
    };
    const ValueId turned = value("/turned", Shape{1, rows, heads * depth});
    const ValueId cut = value("/heads", Shape{1, rows, heads, depth});
    std::vector<Node> nodes;
    nodes.push_back(
        {.op = "Rotary",
         .domain = "hologram",
         .name = sum.name,
         .inputs = {root, graph_.add_constant(std::move(cos)), graph_.add_constant(std::move(sin))},
         .outputs = {turned}});
    nodes.back().attributes.set("heads", heads);
    nodes.push_back({.op = "Reshape",
                     .name = sum.name,
                     .inputs = {turned, graph_.constant({1, rows, heads, depth})},
                     .outputs = {cut}});
    nodes.push_back(
        {.op = "Transpose", .name = sum.name, .inputs = {cut}, .outputs = {sum.outputs[0]}});
    nodes.back().attributes.set("perm", std::vector<int64_t>{0, 2, 1, 3});
    return nodes;
  }

  Graph& graph_;
  ValueUses uses_;
};

}  // namespace

Status fold_rotary(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fold_rotary(*sub.graph));
  return Folder(graph).run();
}

}  // namespace hologram::graph
