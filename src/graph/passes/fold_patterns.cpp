#include "graph/passes/fold_patterns.h"

#include <algorithm>
#include <cmath>

#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

// As near as two or three roundings to f32 leave it: a model with a coarser number means that one.
bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph), uses_(graph) {}

  void run() {
    for (Node& node : graph_.nodes) {
      if (!node.domain.empty() || node.outputs.size() != 1 || !is_f32(graph_, node.outputs[0]))
        continue;
      if (node.op == "Mul" || node.op == "Div")
        fold_product(node) || fold_rms_norm(node);
      else if (node.op == "Add")
        fold_layer_norm(node);
    }
    for (Node& node : graph_.nodes)
      if (node.op == "Pow" && node.domain.empty() && is_f32(graph_, node.inputs[0]) &&
          scalar_constant(graph_, node.inputs[1]) == 2.0f &&
          same_shape(node.inputs[0], node.outputs[0]))
        replace(node, "Mul", {node.inputs[0], node.inputs[0]});
  }

 private:
  // A product as its factors: those that are values, and the number they are multiplied by.
  struct Product {
    std::vector<ValueId> factors;
    double number = 1;
  };

  void collect(ValueId id, Product& product, bool outermost) const {
    if (const auto number = scalar_constant(graph_, id)) {
      product.number *= *number;
      return;
    }
    const Node* node = uses_.maker(id);
    if (node && node->domain.empty() && (outermost || uses_.count(id) == 1)) {
      if (node->op == "Mul") {
        collect(node->inputs[0], product, false);
        collect(node->inputs[1], product, false);
        return;
      }
      if (const auto number =
              node->op == "Div" ? scalar_constant(graph_, node->inputs[1]) : std::nullopt) {
        product.number /= *number;
        collect(node->inputs[0], product, false);
        return;
      }
    }
    product.factors.push_back(id);
  }
  Product product_of(ValueId id) const {
    Product product;
    collect(id, product, true);
    return product;
  }
  // c where the value is c * x.
  std::optional<double> multiple_of(ValueId id, ValueId x) const {
    if (id == x) return 1.0;
    const Product p = product_of(id);
    if (p.factors.size() != 1 || p.factors[0] != x) return std::nullopt;
    return p.number;
  }
  // The other side of an addition of `number`.
  std::optional<ValueId> plus(ValueId id, double number) const {
    const Node* add = uses_.maker(id, "Add");
    for (size_t side = 0; add && side < 2; ++side)
      if (const auto c = scalar_constant(graph_, add->inputs[side]); c && near(*c, number))
        return add->inputs[1 - side];
    return std::nullopt;
  }

  bool is_tanh_argument(ValueId id, ValueId x) const {
    const Product outer = product_of(id);
    if (outer.factors.size() != 1 || !near(outer.number, 0.7978845608)) return false;
    const Node* add = uses_.maker(outer.factors[0], "Add");
    for (size_t side = 0; add && side < 2; ++side) {
      if (add->inputs[side] != x) continue;
      const Product cube = product_of(add->inputs[1 - side]);
      if (!near(cube.number, 0.044715)) continue;
      if (cube.factors == std::vector<ValueId>{x, x, x}) return true;
      const Node* pow = cube.factors.size() == 1 ? uses_.maker(cube.factors[0], "Pow") : nullptr;
      const auto power = pow ? scalar_constant(graph_, pow->inputs[1]) : std::nullopt;
      if (power && *power == 3 && pow->inputs[0] == x) return true;
    }
    return false;
  }

  bool fold_product(Node& node) {
    const Product p = product_of(node.outputs[0]);
    if (p.factors.size() != 2) return false;
    for (size_t side = 0; side < 2; ++side) {
      const ValueId x = p.factors[side], gate = p.factors[1 - side];
      const Node* g = uses_.maker(gate);
      if (!g || !same_shape(x, node.outputs[0])) continue;
      const bool standard = g->domain.empty();
      if (standard && g->op == "Sigmoid" && near(p.number, 1)) {
        if (const auto alpha = multiple_of(g->inputs[0], x))
          return replace(node, "Swish", {x}, [&](Attributes& a) { a.set("alpha", *alpha); });
      }
      if (standard && g->op == "HardSigmoid" && g->inputs[0] == x && near(p.number, 1) &&
          g->attributes.number("beta", 0.5) == 0.5 && g->attributes.number("alpha", 0.2) != 0) {
        const double alpha = g->attributes.number("alpha", 0.2);
        return replace(node, "HardSwish", {x}, [&](Attributes& a) { a.set("alpha", alpha); });
      }
      if (const auto clip = clip_bounds(graph_, *g); clip && near(p.number, 1.0 / 6) &&
                                                     plus(g->inputs[0], 3) == x && clip->low == 0 &&
                                                     clip->high == 6)
        return replace(node, "HardSwish", {x}, [&](Attributes& a) { a.set("alpha", p.number); });
      const auto inner = near(p.number, 0.5) ? plus(gate, 1) : std::nullopt;
      if (!inner) continue;
      if (const Node* erf = uses_.maker(*inner, "Erf")) {
        const auto c = multiple_of(erf->inputs[0], x);
        if (c && near(*c, 0.7071067812)) return replace(node, "Gelu", {x});
      }
      if (const Node* tanh = uses_.maker(*inner, "Tanh");
          tanh && is_tanh_argument(tanh->inputs[0], x))
        return replace(node, "Gelu", {x},
                       [](Attributes& a) { a.set("approximate", std::string("tanh")); });
    }
    return false;
  }

  // The input of a mean over the last axis that is kept.
  std::optional<ValueId> mean_of(ValueId id) const {
    const Node* node = uses_.maker(id, "ReduceMean");
    if (!node || node->attributes.integer("keepdims", 1) != 1) return std::nullopt;
    const Tensor* axes = constant_of(graph_, node->input(1));
    const Shape* shape = shape_of(graph_, node->inputs[0]);
    if (!axes || axes->dtype != DType::i64 || axes->count() != 1 || !shape) return std::nullopt;
    const int64_t axis = *axes->as<int64_t>();
    if (axis != -1 && axis != static_cast<int64_t>(shape->rank()) - 1) return std::nullopt;
    return node->inputs[0];
  }
  bool is_square(ValueId id, ValueId x) const {
    if (const Node* pow = uses_.maker(id, "Pow"))
      return pow->inputs[0] == x && scalar_constant(graph_, pow->inputs[1]) == 2.0f;
    const Node* mul = uses_.maker(id, "Mul");
    return mul && mul->inputs[0] == x && mul->inputs[1] == x;
  }
  // epsilon where the value is sqrt(mean(x^2) + epsilon).
  std::optional<double> deviation(ValueId id, ValueId x) const {
    const Node* root = uses_.maker(id, "Sqrt");
    const Node* add = root ? uses_.maker(root->inputs[0], "Add") : nullptr;
    for (size_t side = 0; add && side < 2; ++side) {
      const auto epsilon = scalar_constant(graph_, add->inputs[side]);
      const auto square = mean_of(add->inputs[1 - side]);
      if (epsilon && square && is_square(*square, x)) return *epsilon;
    }
    return std::nullopt;
  }
  // x / deviation(x), however it is written; the deviation's epsilon and x.
  struct Normalised {
    ValueId x;
    double epsilon;
  };
  std::optional<Normalised> normalised(ValueId id) const {
    if (const Node* div = uses_.maker(id, "Div"))
      if (const auto epsilon = deviation(div->inputs[1], div->inputs[0]))
        return Normalised{div->inputs[0], *epsilon};
    const Node* mul = uses_.maker(id, "Mul");
    for (size_t side = 0; mul && side < 2; ++side) {
      const ValueId x = mul->inputs[side];
      if (const Node* reciprocal = uses_.maker(mul->inputs[1 - side], "Reciprocal"))
        if (const auto epsilon = deviation(reciprocal->inputs[0], x))
          return Normalised{x, *epsilon};
      if (const Node* div = uses_.maker(mul->inputs[1 - side], "Div"))
        if (scalar_constant(graph_, div->inputs[0]) == 1.0f)
          if (const auto epsilon = deviation(div->inputs[1], x)) return Normalised{x, *epsilon};
    }
    return std::nullopt;
  }
  // A constant with a value an element of the last axis of x.
  bool is_row(ValueId id, ValueId x) const {
    const Tensor* t = constant_of(graph_, id);
    const Shape* shape = shape_of(graph_, x);
    if (!t || t->dtype != DType::f32 || t->dims.rank() != 1 || !shape || shape->rank() == 0)
      return false;
    const Dim& last = shape->dims().back();
    return !last.is_symbol() && last.value() == t->count();
  }

  bool fold_rms_norm(Node& node) {
    if (node.op != "Mul") return false;
    for (size_t side = 0; side < 2; ++side) {
      const auto n = normalised(node.inputs[1 - side]);
      if (!n || !is_row(node.inputs[side], n->x) || leads_to_layer_norm(node, n->x)) continue;
      // What is left of a layer norm without a bias.
      const Node* sub = uses_.maker(n->x, "Sub");
      const bool centred = sub && mean_of(sub->inputs[1]) == sub->inputs[0];
      return replace(node, centred ? "LayerNormalization" : "RMSNormalization",
                     {centred ? sub->inputs[0] : n->x, node.inputs[side]},
                     [&](Attributes& a) { set_norm(a, n->epsilon); });
    }
    return fold_plain_rms_norm(node);
  }

  // x is an input less its mean, and a bias follows.
  bool leads_to_layer_norm(const Node& node, ValueId x) const {
    const Node* sub = uses_.maker(x, "Sub");
    if (!sub || mean_of(sub->inputs[1]) != sub->inputs[0]) return false;
    const size_t reader = uses_.only_reader(node.outputs[0]);
    if (reader == ValueUses::kNone) return false;
    const Node& next = graph_.nodes[reader];
    return next.op == "Add" && (is_row(next.inputs[0], x) || is_row(next.inputs[1], x));
  }

  // Without a scale, which may have been a multiplication by ones.
  bool fold_plain_rms_norm(Node& node) {
    const auto n = normalised(node.outputs[0]);
    const Shape* shape = n ? shape_of(graph_, n->x) : nullptr;
    if (!shape || shape->rank() == 0 || shape->dims().back().is_symbol()) return false;
    // A mean that is subtracted, or a scale that follows, makes a larger pattern of it.
    if (uses_.maker(n->x, "Sub")) return false;
    if (const size_t reader = uses_.only_reader(node.outputs[0]); reader != ValueUses::kNone) {
      const Node& next = graph_.nodes[reader];
      for (ValueId id : next.inputs)
        if (next.op == "Mul" && next.domain.empty() && is_row(id, n->x)) return false;
    }
    auto ones = Tensor::allocate(DType::f32, {shape->dims().back().value()});
    if (!ones) return false;
    std::fill_n(ones->as<float>(), ones->count(), 1.0f);
    const ValueId scale = graph_.add_constant(*std::move(ones), "ones");
    return replace(node, "RMSNormalization", {n->x, scale},
                   [&](Attributes& a) { set_norm(a, n->epsilon); });
  }

  bool fold_layer_norm(Node& node) {
    for (size_t side = 0; side < 2; ++side) {
      const Node* mul = uses_.maker(node.inputs[1 - side], "Mul");
      for (size_t s = 0; mul && s < 2; ++s) {
        const auto n = normalised(mul->inputs[1 - s]);
        const Node* sub = n ? uses_.maker(n->x, "Sub") : nullptr;
        if (!sub || mean_of(sub->inputs[1]) != sub->inputs[0]) continue;
        const ValueId x = sub->inputs[0];
        if (!is_row(mul->inputs[s], x) || !is_row(node.inputs[side], x)) continue;
        return replace(node, "LayerNormalization", {x, mul->inputs[s], node.inputs[side]},
                       [&](Attributes& a) { set_norm(a, n->epsilon); });
      }
    }
    return false;
  }

  static void set_norm(Attributes& a, double epsilon) {
    a.set("axis", int64_t{-1});
    a.set("epsilon", epsilon);
  }

  bool same_shape(ValueId a, ValueId b) const {
    const Shape *x = shape_of(graph_, a), *y = shape_of(graph_, b);
    return x && y && x->rank() == y->rank();
  }

  bool replace(Node& node, std::string op, std::vector<ValueId> inputs) {
    return replace(node, std::move(op), std::move(inputs), [](Attributes&) {});
  }
  template <typename F>
  bool replace(Node& node, std::string op, std::vector<ValueId> inputs, const F& attributes) {
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.attributes = Attributes();
    attributes(node.attributes);
    return true;
  }

  Graph& graph_;
  ValueUses uses_;
};

}  // namespace

void fold_patterns(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) fold_patterns(*sub.graph);
  Folder(graph).run();
}

}  // namespace hologram::graph
