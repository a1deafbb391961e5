#include "graph/passes/join_projections.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "backends/cpu/kernels/alignment.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

// Operands of attention, and the attributes that say how they lie.
constexpr std::array<const char*, 3> kViews = {"q", "k", "v"};

class Joiner {
 public:
  Joiner(Graph& graph, FusionReport& report) : graph_(graph), report_(report), uses_(graph) {}

  Status run() {
    for (Node& node : graph_.nodes)
      if (node.domain == "hologram" && node.op == "Attention") HOLOGRAM_CHECK(join(node));
    uses_.sweep();
    return {};
  }

 private:
  // A product by a constant matrix whose result only this attention reads, with nothing behind it
  // but a bias.
  Node* projection(ValueId value) const {
    Node* node = uses_.maker(value, "MatMul", "hologram");
    if (!node || uses_.count(value) != 1 || node->inputs.size() > 3) return nullptr;
    for (const auto& attribute : node->attributes)
      if (attribute.name != "k" && attribute.name != "n" && attribute.name != "transposed" &&
          attribute.name != "shape")
        return nullptr;
    const int64_t n = node->attributes.integer("n");
    const Tensor* weights = constant_of(graph_, node->inputs[1]);
    // A matrix that others read too would be stored twice.
    if (!weights || weights->dtype != DType::f32 || uses_.count(node->inputs[1]) != 1)
      return nullptr;
    if (node->input(2) != kNoValue) {
      const Tensor* bias = constant_of(graph_, node->input(2));
      if (!bias || bias->dtype != DType::f32 || bias->count() != n) return nullptr;
    }
    return node;
  }

  // The view of columns `first` to `first` + n of rows of `all`, where it was of rows of n.
  static bool widen(std::span<const int64_t> view, int64_t heads, int64_t depth, int64_t n,
                    int64_t first, int64_t all, std::vector<int64_t>& wide) {
    if (view.size() != 4) return false;
    const int64_t offset = view[0], batch = view[1], head = view[2], row = view[3];
    // Heads lie side by side within a row.
    if (offset < 0 || head < 0 || row < 0 || row % n != 0 || (batch != -1 && batch % n != 0) ||
        offset % n + (heads - 1) * head + depth > n)
      return false;
    wide = {offset / n * all + first + offset % n, batch == -1 ? -1 : batch / n * all, head,
            row / n * all};
    return true;
  }

  // What is only known while running comes from [batch, rows, ...], as it did before.
  bool same_front(const Node& attention, const Node& product) const {
    const Attributes& a = attention.attributes;
    if (a.integer("batch", -1) >= 0 && a.integer("queries", -1) >= 0 && a.integer("keys", -1) >= 0)
      return true;
    const Shape *from = shape_of(graph_, product.inputs[0]),
                *to = shape_of(graph_, product.outputs[0]);
    return !product.attributes.has("shape") && from && to && from->rank() == 3 && to->rank() == 3;
  }

  Status join(Node& attention) {
    std::vector<size_t> joined;
    for (size_t i = 0; i < kViews.size(); ++i)
      if (projection(attention.inputs[i])) joined.push_back(i);
    // Of other rows than the last one's (queries of a decoder that looks at an encoder).
    const size_t last = joined.empty() ? 0 : joined.back();
    std::erase_if(joined, [&](size_t i) { return !joins(attention, i, last); });
    if (joined.size() < 2) return {};

    int64_t all = 0;
    for (const size_t i : joined) all += columns(attention, i);
    const Attributes& a = attention.attributes;
    std::array<std::vector<int64_t>, 3> views;
    int64_t first = 0;
    for (const size_t i : joined) {
      if (!widen(a.integers(kViews[i]), a.integer(i == 0 ? "heads" : "kv_heads"),
                 a.integer(i == 2 ? "value_depth" : "depth"), columns(attention, i), first, all,
                 views[i]))
        return {};
      first += columns(attention, i);
    }
    return replace(attention, joined, all, views);
  }

  int64_t columns(const Node& attention, size_t i) const {
    return projection(attention.inputs[i])->attributes.integer("n");
  }
  bool joins(const Node& attention, size_t i, size_t last) const {
    const Node &one = *projection(attention.inputs[i]),
               &other = *projection(attention.inputs[last]);
    return one.inputs[0] == other.inputs[0] &&
           one.attributes.integer("transposed") == other.attributes.integer("transposed") &&
           same_front(attention, one);
  }

  Status replace(Node& attention, const std::vector<size_t>& joined, int64_t all,
                 std::array<std::vector<int64_t>, 3>& views) {
    std::vector<Node*> products;
    for (const size_t i : joined) products.push_back(projection(attention.inputs[i]));
    Node& kept = **std::ranges::min_element(products);  // rows and constants are there before it
    const int64_t k = kept.attributes.integer("k");
    const bool transposed = kept.attributes.integer("transposed") != 0;
    const bool biased =
        std::ranges::any_of(products, [](const Node* p) { return p->input(2) != kNoValue; });
    HOLOGRAM_TRY(Tensor weights, Tensor::allocate(DType::f32, transposed ? kernels::Dims{all, k}
                                                                         : kernels::Dims{k, all}));
    HOLOGRAM_TRY(Tensor bias, Tensor::allocate(DType::f32, {all}));
    std::ranges::fill(bias.span<float>(), 0.0f);
    int64_t first = 0;
    for (const Node* product : products) {
      const int64_t n = product->attributes.integer("n");
      HOLOGRAM_TRY(const Tensor part, kernels::aligned(*constant_of(graph_, product->inputs[1])));
      if (part.count() != k * n) return {};
      if (transposed)
        std::memcpy(weights.as<float>() + first * k, part.as<float>(),
                    part.count() * sizeof(float));
      else
        for (int64_t row = 0; row < k; ++row)
          std::memcpy(weights.as<float>() + row * all + first, part.as<float>() + row * n,
                      n * sizeof(float));
      if (product->input(2) != kNoValue) {
        HOLOGRAM_TRY(const Tensor b, kernels::aligned(*constant_of(graph_, product->input(2))));
        std::memcpy(bias.as<float>() + first, b.as<float>(), n * sizeof(float));
      }
      first += n;
    }
    const Shape* rows = shape_of(graph_, kept.inputs[0]);
    if (!rows || rows->rank() == 0) return {};
    std::vector<Dim> dims = rows->dims();
    dims.back() = all;
    Node made{
        .op = "MatMul",
        .domain = "hologram",
        .name = kept.name,
        .opset = kept.opset,
        .inputs = {kept.inputs[0], graph_.add_constant(std::move(weights), kept.name + ".joined")}};
    if (biased) made.inputs.push_back(graph_.add_constant(std::move(bias), kept.name + ".bias"));
    made.attributes.set("k", k);
    made.attributes.set("n", all);
    if (transposed) made.attributes.set("transposed", int64_t{1});
    const ValueId result = graph_.add_value(kept.name + ".rows",
                                            ValueType::tensor(DType::f32, Shape(std::move(dims))));
    made.outputs = {result};
    for (Node* product : products)
      if (product != &kept) ValueUses::remove(*product);
    kept = std::move(made);
    for (const size_t i : joined) {
      attention.inputs[i] = result;
      attention.attributes.set(kViews[i], std::move(views[i]));
    }
    report_.fused.push_back(
        {kept.name, fmt_joined(joined.size()), graph_.value(result).type.to_string()});
    return {};
  }

  static std::string fmt_joined(size_t count) {
    return count == 3 ? "MatMul, MatMul, MatMul of the same rows"
                      : "MatMul, MatMul of the same rows";
  }

  Graph& graph_;
  FusionReport& report_;
  ValueUses uses_;
};

}  // namespace

Status join_projections(Graph& graph, FusionReport& report) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(join_projections(*sub.graph, report));
  return Joiner(graph, report).run();
}

}  // namespace hologram::graph
