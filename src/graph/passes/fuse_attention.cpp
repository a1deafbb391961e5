#include "graph/passes/fuse_attention.h"

#include <array>
#include <cmath>

#include "backends/cpu/kernels/alignment.h"
#include "graph/passes/strided_view.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

constexpr int64_t kUnknown = StridedView::kUnknown;

// One operand as [batch, heads, rows, depth].
struct Operand {
  ValueId root;
  int64_t batch = 1, heads = 1, rows = 1, depth = 1;  // kUnknown: known while running
  int64_t repeats = 1;                                // neighbouring heads that are the same
  std::vector<int64_t> view;                          // offset, batch, head, row strides
  double scale = 1;
  Dim samples = 1;  // the batch, as it is called
};

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), uses_(graph) {}

  Status run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op == "Softmax" && graph_.nodes[i].domain.empty()) fuse(i);
    uses_.sweep();
    return {};
  }

 private:
  // The number of an axis and its stride: at most one factor.
  static bool single(const std::vector<StridedView::Factor>& factors, int64_t& size,
                     int64_t& stride) {
    if (factors.size() > 1) return false;
    size = 1;
    stride = 0;
    if (factors.empty()) return true;
    size = factors[0].size.is_symbol() ? kUnknown : factors[0].size.value();
    stride = factors[0].stride;
    return true;
  }

  // `id` is [batch, heads, rows, depth], [heads, rows, depth], or with the last two exchanged.
  std::optional<Operand> operand(ValueId id, bool exchanged) const {
    auto view = trace_view(graph_, uses_, id);
    if (!view || view->axes.size() < 3 || view->axes.size() > 4 || !is_f32(graph_, view->root))
      return std::nullopt;
    if (view->axes.size() == 3)
      view->axes.insert(view->axes.begin(), std::vector<StridedView::Factor>());
    if (exchanged) std::swap(view->axes[2], view->axes[3]);
    Operand o{.root = view->root, .scale = view->scale};
    int64_t batch, head, row, step;
    if (!single(view->axes[0], o.batch, batch) || !single(view->axes[2], o.rows, row) ||
        !single(view->axes[3], o.depth, step))
      return std::nullopt;
    if (!view->axes[0].empty()) o.samples = view->axes[0][0].size;
    auto heads = view->axes[1];
    if (heads.size() == 2 && heads[1].stride == 0 && !heads[1].size.is_symbol()) {
      o.repeats = heads[1].size.value();
      heads.pop_back();
    }
    if (!single(heads, o.heads, head)) return std::nullopt;
    if (o.depth < 1 || o.heads < 1 || (o.depth > 1 && step != 1) || row == kUnknown)
      return std::nullopt;
    const Shape& root = *shape_of(graph_, o.root);
    // Heads a number of rows apart that is only known while running: [batch, heads, rows, depth].
    if (head == kUnknown) {
      if (root.rank() != 4 || o.rows != kUnknown || !root[2].is_symbol() || view->offset != 0 ||
          row != o.depth || root[3] != Dim(o.depth) || root[1] != Dim(o.heads) ||
          (root[0].is_symbol() ? o.batch != kUnknown : root[0] != Dim(o.batch)))
        return std::nullopt;
      o.view = {0, kUnknown, kUnknown, row};
      return o;
    }
    // What is only known while running is derived from a tensor [batch, rows, ...].
    if (batch == kUnknown || o.batch == kUnknown || o.rows == kUnknown) {
      if (root.rank() < 3) return std::nullopt;
      int64_t inner = 1;
      for (size_t axis = 2; axis < root.rank(); ++axis) {
        if (root[axis].is_symbol()) return std::nullopt;
        inner *= root[axis].value();
      }
      if (row != inner || view->offset >= inner) return std::nullopt;
      const bool batched = root[0].is_symbol() ? o.batch == kUnknown : o.batch == root[0].value();
      const bool rowed = root[1].is_symbol() ? o.rows == kUnknown : o.rows == root[1].value();
      if (!batched || !rowed) return std::nullopt;
      batch = kUnknown;
    }
    o.view = {view->offset, batch, head, row};
    return o;
  }

  // Whether the constant hides exactly the keys after the query, and nothing else.
  bool is_causal(ValueId id, const Operand& q, const Operand& k) const {
    const Tensor* t = constant_of(graph_, id);
    if (!t || t->dtype != DType::f32 || q.rows < 1 || q.rows != k.rows ||
        t->count() != q.rows * k.rows)
      return false;
    const auto mask = kernels::aligned(*t);
    if (!mask) return false;
    for (int64_t i = 0; i < q.rows; ++i)
      for (int64_t j = 0; j < k.rows; ++j) {
        const float value = mask->as<float>()[i * k.rows + j];
        if (j <= i ? value != 0.0f : value > -1e30f) return false;
      }
    return true;
  }

  bool last_axis(const Node& softmax) const {
    const Shape* shape = shape_of(graph_, softmax.inputs[0]);
    const int64_t axis = softmax.attributes.integer("axis", -1);
    return shape && (axis == -1 || axis + 1 == static_cast<int64_t>(shape->rank()));
  }

  void fuse(size_t index) {
    Node& softmax = graph_.nodes[index];
    if (!is_f32(graph_, softmax.outputs[0]) || !last_axis(softmax)) return;
    const size_t product = uses_.only_reader(softmax.outputs[0]);
    if (product == ValueUses::kNone) return;
    Node& weighted = graph_.nodes[product];
    if (weighted.op != "MatMul" || !weighted.domain.empty() ||
        weighted.inputs[0] != softmax.outputs[0])
      return;
    // Back from the softmax to the product of queries and keys.
    ValueId scores = softmax.inputs[0], mask = kNoValue;
    double scale = 1;
    const Node* dot = nullptr;
    for (int step = 0; step < 4; ++step) {
      const Node* node = uses_.maker(scores);
      if (!node || !node->domain.empty() || uses_.count(scores) != 1) return;
      if (node->op == "MatMul") {
        dot = node;
        break;
      }
      if (node->op == "Add" && mask == kNoValue && step == 0) {
        const size_t side = leads_to_product(node->inputs[0]) ? 0 : 1;
        mask = node->inputs[1 - side];
        scores = node->inputs[side];
        continue;
      }
      if (node->op == "Mul" || node->op == "Div") {
        const bool first = node->op == "Mul" && scalar_constant(graph_, node->inputs[0]);
        const auto number = scalar_constant(graph_, node->inputs[first ? 0 : 1]);
        if (!number) return;
        scale *= node->op == "Mul" ? *number : 1 / *number;
        scores = node->inputs[first ? 1 : 0];
        continue;
      }
      return;
    }
    if (!dot || !is_f32(graph_, dot->outputs[0])) return;
    auto q = operand(dot->inputs[0], false), k = operand(dot->inputs[1], true),
         v = operand(weighted.inputs[1], false);
    if (!q || !k || !v || q->depth != k->depth || q->samples != k->samples ||
        q->samples != v->samples || q->samples == Dim(std::string("?")) || k->rows != v->rows ||
        q->repeats != 1 || k->repeats != v->repeats || k->heads != v->heads ||
        q->heads != k->heads * k->repeats || v->scale != 1)
      return;
    if (mask != kNoValue && !mask_fits(mask)) return;
    const bool causal = mask != kNoValue && is_causal(mask, *q, *k);
    Node made{.op = "Attention",
              .domain = "hologram",
              .name = weighted.name,
              .opset = weighted.opset,
              .inputs = {q->root, k->root, v->root}};
    if (mask != kNoValue && !causal) made.inputs.push_back(mask);
    Attributes& a = made.attributes;
    a.set("batch", q->batch);
    a.set("queries", q->rows);
    a.set("keys", k->rows);
    a.set("heads", q->heads);
    a.set("kv_heads", k->heads);
    a.set("depth", q->depth);
    a.set("value_depth", v->depth);
    a.set("scale", scale * q->scale * k->scale);
    if (causal) a.set("causal", int64_t{1});
    a.set("q", q->view);
    a.set("k", k->view);
    a.set("v", v->view);
    const size_t last = absorb_output(product, *q, *v, a);
    made.outputs = {graph_.nodes[last].outputs[0]};
    ValueUses::remove(softmax);
    graph_.nodes[last] = std::move(made);
  }

  bool leads_to_product(ValueId id) const {
    for (int step = 0; step < 3; ++step) {
      const Node* node = uses_.maker(id);
      if (!node || !node->domain.empty() || uses_.count(id) != 1) return false;
      if (node->op == "MatMul") return true;
      if (node->op != "Mul" && node->op != "Div") return false;
      id = node->inputs[scalar_constant(graph_, node->inputs[0]) ? 1 : 0];
    }
    return false;
  }

  bool mask_fits(ValueId mask) const {
    const Shape* shape = shape_of(graph_, mask);
    return is_f32(graph_, mask) && shape && shape->rank() <= 4;
  }

  // A transposition and a reshape that follow become the way the result is written. Says which node
  // is replaced; the others are removed.
  size_t absorb_output(size_t product, const Operand& q, const Operand& v, Attributes& a) {
    size_t last = product;
    const auto finish = [&](size_t next) {
      ValueUses::remove(graph_.nodes[last]);
      last = next;
    };
    const Shape* plain = shape_of(graph_, graph_.nodes[product].outputs[0]);
    const bool is_static = plain && plain->is_static();
    size_t reader = uses_.only_reader(graph_.nodes[product].outputs[0]);
    bool rows_first = false;
    if (reader != ValueUses::kNone && is_rows_first(graph_.nodes[reader], plain, q.batch)) {
      rows_first = true;
      finish(reader);
      reader = uses_.only_reader(graph_.nodes[last].outputs[0]);
      if (reader != ValueUses::kNone && is_reshape(graph_, graph_.nodes[reader])) {
        finish(reader);
      } else if (reader != ValueUses::kNone && !is_static) {
        const Node& next = graph_.nodes[reader];
        const Shape* to = next.op == "Reshape" ? shape_of(graph_, next.outputs[0]) : nullptr;
        const Shape* from = shape_of(graph_, graph_.nodes[last].outputs[0]);
        if (to && from && to->rank() == 3 && (*to)[0] == (*from)[0] &&
            (*to)[2] == Dim(q.heads * v.depth)) {
          a.set("merged", int64_t{1});
          finish(reader);
        }
      }
    }
    if (rows_first) a.set("rows_first", int64_t{1});
    if (const Shape* shape = shape_of(graph_, graph_.nodes[last].outputs[0]);
        shape && shape->is_static())
      a.set("shape", *shape->to_vector());
    return last;
  }

  // [batch, heads, rows, depth] -> [batch, rows, heads, depth], axes of one element aside.
  static bool is_rows_first(const Node& node, const Shape* from, int64_t batch) {
    if (node.op != "Transpose" || !node.domain.empty() || !from) return false;
    const auto perm = node.attributes.integers("perm");
    if (from->rank() == 4) {
      if (perm.size() == 4 && perm[0] == 0 && perm[1] == 2 && perm[2] == 1 && perm[3] == 3)
        return true;
      return batch == 1 && from->is_static() && perm.size() == 4 && perm[0] == 2 && perm[1] == 0 &&
             perm[2] == 1 && perm[3] == 3;
    }
    return from->rank() == 3 && from->is_static() && perm.size() == 3 && perm[0] == 1 &&
           perm[1] == 0 && perm[2] == 2;
  }

  Graph& graph_;
  ValueUses uses_;
};

}  // namespace

Status fuse_attention(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fuse_attention(*sub.graph));
  return Fuser(graph).run();
}

}  // namespace hologram::graph
