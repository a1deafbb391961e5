#include "onnx/gradient.h"

#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

namespace hologram::onnx {
namespace {

using graph::Attributes;
using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

// Of a node without graphs.
Node copy_of(const Node& node) {
  Node copy;
  copy.op = node.op, copy.domain = node.domain, copy.name = node.name, copy.opset = node.opset;
  copy.inputs = node.inputs, copy.outputs = node.outputs, copy.attributes = node.attributes;
  return copy;
}

class Differentiator {
 public:
  Differentiator(Graph& graph, const GradientRequest& request) : graph_(graph), request_(request) {}

  Result<std::vector<ValueId>> run() {
    HOLOGRAM_CHECK(trace());
    add_to(y_, ones_like(y_));
    // Backwards over what depends on the xs; rules write behind it.
    for (size_t i = path_.size(); i-- > 0;) {
      const Node& node = path_[i];
      const ValueId arrived = node.outputs.empty() ? kNoValue : derivative_of(node.outputs[0]);
      if (arrived != kNoValue) HOLOGRAM_CHECK(apply(node, arrived));
    }
    std::vector<ValueId> results;
    for (size_t i = 0; i < request_.differentiated; ++i) {
      const ValueId x = request_.arguments[i], found = derivative_of(x);
      results.push_back(found != kNoValue ? found : filled_like(x, 0));
    }
    return results;
  }

 private:
  using Rule = std::function<void(Differentiator&, const Node&, ValueId)>;

  // The nodes between the sources and y, with the arguments in the sources' place.
  Status trace() {
    std::unordered_map<ValueId, ValueId> now;
    bool same = true;
    for (size_t i = 0; i < request_.sources.size(); ++i) {
      now[request_.sources[i]] = request_.arguments[i];
      same &= request_.sources[i] == request_.arguments[i];
    }
    std::set<ValueId> needed = {request_.y};
    std::vector<const Node*> order;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      const Node& node = graph_.nodes[i];
      bool wanted = false;
      for (const ValueId id : node.outputs) wanted |= needed.contains(id) && !now.contains(id);
      if (!wanted) continue;
      order.push_back(&node);
      for (const ValueId id : node.inputs) needed.insert(id);
    }
    std::set<ValueId> varying(request_.sources.begin(), request_.sources.end());
    std::vector<Node> between;
    for (size_t i = order.size(); i-- > 0;) {
      bool varies = false;
      for (const ValueId id : order[i]->inputs) varies |= varying.contains(id);
      if (!varies) continue;
      if (!order[i]->subgraphs.empty())
        return fail(ErrorCode::unsupported,
                    "the derivative of {} is not known; supported: operators without graphs",
                    order[i]->describe());
      varying.insert(order[i]->outputs.begin(), order[i]->outputs.end());
      between.push_back(copy_of(*order[i]));
    }
    y_ = request_.y;
    varying_ = std::move(varying);
    if (!same) {
      for (Node& node : between) {
        for (ValueId& id : node.inputs)
          if (auto it = now.find(id); it != now.end()) id = it->second;
        for (ValueId& id : node.outputs) {
          const ValueId fresh = graph_.add_value("");
          varying_.insert(fresh);
          now[id] = fresh;
          id = fresh;
        }
        graph_.nodes.push_back(copy_of(node));
      }
      if (auto it = now.find(y_); it != now.end()) y_ = it->second;
      varying_.insert(request_.arguments.begin(), request_.arguments.end());
    }
    path_ = std::move(between);
    return {};
  }

  Status apply(const Node& node, ValueId arrived) {
    const auto& rules = table();
    const auto rule = rules.find({node.domain, node.op});
    if (rule == rules.end() || node.outputs.size() != 1) {
      std::string known;
      for (const auto& [key, value] : rules)
        if (key.first.empty()) known += (known.empty() ? "" : ", ") + key.second;
      return fail(ErrorCode::unsupported, "the derivative of {} is not known; supported: {}",
                  node.describe(), known);
    }
    rule->second(*this, node, arrived);
    return {};
  }

  ValueId emit(std::string op, std::vector<ValueId> inputs, Attributes attributes = {},
               std::string domain = "") {
    Node node;
    node.op = std::move(op);
    node.domain = std::move(domain);
    node.name = request_.name;
    node.opset = request_.opset;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    node.outputs = {graph_.add_value("")};
    const ValueId result = node.outputs[0];
    graph_.nodes.push_back(std::move(node));
    return result;
  }
  ValueId mul(ValueId a, ValueId b) { return emit("Mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return emit("Div", {a, b}); }
  ValueId neg(ValueId a) { return emit("Neg", {a}); }
  // A number in the type of `like`.
  ValueId number(double value, ValueId like) {
    return emit("CastLike", {graph_.constant(static_cast<float>(value)), like});
  }
  ValueId filled_like(ValueId like, double value) {
    return emit("Expand", {number(value, like), emit("Shape", {like})});
  }
  ValueId ones_like(ValueId like) { return filled_like(like, 1); }
  ValueId product(ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
    Attributes t;
    t.set("transA", int64_t{transpose_a});
    t.set("transB", int64_t{transpose_b});
    return emit("FusedMatMul", {a, b}, t, "com.microsoft");
  }

  ValueId derivative_of(ValueId id) const {
    const auto found = derivatives_.find(id);
    return found == derivatives_.end() ? kNoValue : found->second;
  }
  // One more contribution to the derivative by `id`, which may be of a broadcast shape. What does
  // not depend on the xs needs none.
  void add_to(ValueId id, ValueId contribution, bool broadcast = true) {
    if (!varying_.contains(id)) return;
    if (broadcast) contribution = emit("Unbroadcast", {contribution, id}, {}, "hologram");
    const ValueId before = derivative_of(id);
    derivatives_[id] = before == kNoValue ? contribution : emit("Add", {before, contribution});
  }

  static const std::map<std::pair<std::string, std::string>, Rule>& table() {
    using D = Differentiator;
    using N = const Node;
    // f'(x, y) times what arrived.
    auto unary = [](auto factor) {
      return [factor](D& d, N& n, ValueId g) {
        d.add_to(n.inputs[0], d.mul(g, factor(d, n.inputs[0], n.outputs[0])), false);
      };
    };
    // The elements in another order or shape.
    const Rule reshaped = [](D& d, N& n, ValueId g) {
      d.add_to(n.inputs[0], d.emit("Reshape", {g, d.emit("Shape", {n.inputs[0]})}), false);
    };
    const Rule constant = [](D&, N&, ValueId) {};
    static const std::map<std::pair<std::string, std::string>, Rule> kRules = {
        {{"", "Identity"}, [](D& d, N& n, ValueId g) { d.add_to(n.inputs[0], g, false); }},
        {{"", "Add"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], g);
           d.add_to(n.inputs[1], g);
         }},
        {{"", "Sub"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], g);
           d.add_to(n.inputs[1], d.neg(g));
         }},
        {{"", "Mul"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], d.mul(g, n.inputs[1]));
           d.add_to(n.inputs[1], d.mul(g, n.inputs[0]));
         }},
        {{"", "Div"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], d.div(g, n.inputs[1]));
           d.add_to(n.inputs[1], d.neg(d.div(d.mul(g, n.outputs[0]), n.inputs[1])));
         }},
        {{"", "Pow"},
         [](D& d, N& n, ValueId g) {
           const ValueId x = n.inputs[0], exponent = d.emit("CastLike", {n.inputs[1], x});
           const ValueId less = d.emit("Sub", {exponent, d.number(1, x)});
           d.add_to(x, d.mul(d.mul(g, exponent), d.emit("Pow", {x, less})));
           const ValueId by_exponent = d.mul(d.mul(g, n.outputs[0]), d.emit("Log", {x}));
           d.add_to(n.inputs[1], d.emit("CastLike", {by_exponent, n.inputs[1]}));
         }},
        {{"", "Sum"},
         [](D& d, N& n, ValueId g) {
           for (const ValueId id : n.inputs) d.add_to(id, g);
         }},
        {{"", "Mean"},
         [](D& d, N& n, ValueId g) {
           const ValueId count = d.number(static_cast<double>(n.inputs.size()), g);
           for (const ValueId id : n.inputs) d.add_to(id, d.div(g, count));
         }},
        {{"", "MatMul"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], d.product(g, n.inputs[1], false, true));
           d.add_to(n.inputs[1], d.product(n.inputs[0], g, true, false));
         }},
        {{"", "Gemm"},
         [](D& d, N& n, ValueId g) {
           const bool ta = n.attributes.integer("transA"), tb = n.attributes.integer("transB");
           const ValueId a = n.inputs[0], b = n.inputs[1];
           const ValueId scaled = d.mul(g, d.number(n.attributes.number("alpha", 1), g));
           d.add_to(a, ta ? d.product(b, scaled, tb, true) : d.product(scaled, b, false, !tb));
           d.add_to(b, tb ? d.product(scaled, a, true, ta) : d.product(a, scaled, !ta, false));
           if (n.input(2) != kNoValue)
             d.add_to(n.inputs[2], d.mul(g, d.number(n.attributes.number("beta", 1), g)));
         }},
        {{"", "Neg"}, [](D& d, N& n, ValueId g) { d.add_to(n.inputs[0], d.neg(g), false); }},
        {{"", "Exp"}, unary([](D&, ValueId, ValueId y) { return y; })},
        {{"", "Log"}, unary([](D& d, ValueId x, ValueId) { return d.emit("Reciprocal", {x}); })},
        {{"", "Sqrt"}, unary([](D& d, ValueId, ValueId y) { return d.div(d.number(0.5, y), y); })},
        {{"", "Reciprocal"}, unary([](D& d, ValueId, ValueId y) { return d.neg(d.mul(y, y)); })},
        {{"", "Sin"}, unary([](D& d, ValueId x, ValueId) { return d.emit("Cos", {x}); })},
        {{"", "Cos"}, unary([](D& d, ValueId x, ValueId) { return d.neg(d.emit("Sin", {x})); })},
        {{"", "Abs"}, unary([](D& d, ValueId x, ValueId) { return d.emit("Sign", {x}); })},
        {{"", "Tanh"}, unary([](D& d, ValueId, ValueId y) {
           return d.emit("Sub", {d.number(1, y), d.mul(y, y)});
         })},
        {{"", "Sigmoid"}, unary([](D& d, ValueId, ValueId y) {
           return d.mul(y, d.emit("Sub", {d.number(1, y), y}));
         })},
        {{"", "Softplus"}, unary([](D& d, ValueId x, ValueId) { return d.emit("Sigmoid", {x}); })},
        {{"", "Relu"}, unary([](D& d, ValueId x, ValueId) {
           return d.emit("CastLike", {d.emit("Greater", {x, d.number(0, x)}), x});
         })},
        {{"", "Reshape"}, reshaped},
        {{"", "Flatten"}, reshaped},
        {{"", "Squeeze"}, reshaped},
        {{"", "Unsqueeze"}, reshaped},
        {{"", "Expand"}, [](D& d, N& n, ValueId g) { d.add_to(n.inputs[0], g); }},
        {{"", "CastLike"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], d.emit("CastLike", {g, n.inputs[0]}), false);
         }},
        {{"", "Shape"}, constant},
        {{"", "Sign"}, constant},
        {{"", "Greater"}, constant},
        {{"hologram", "Unbroadcast"},
         [](D& d, N& n, ValueId g) {
           d.add_to(n.inputs[0], d.emit("Expand", {g, d.emit("Shape", {n.inputs[0]})}), false);
         }},
    };
    return kRules;
  }

  Graph& graph_;
  const GradientRequest& request_;
  std::vector<Node> path_;
  std::set<ValueId> varying_;
  ValueId y_ = kNoValue;
  std::unordered_map<ValueId, ValueId> derivatives_;
};

}  // namespace

Result<std::vector<ValueId>> add_gradient(Graph& graph, const GradientRequest& request) {
  return Differentiator(graph, request).run();
}

}  // namespace hologram::onnx
