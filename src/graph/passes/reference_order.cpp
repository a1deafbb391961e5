#include "graph/passes/reference_order.h"

#include <algorithm>

#include "backends/cpu/dense/conv.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

bool quantises(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return (node.op == "DynamicQuantizeLinear" && node.domain.empty()) ||
           std::ranges::any_of(node.subgraphs,
                               [](const Subgraph& sub) { return quantises(*sub.graph); });
  });
}

// Whether a transposition made the last axis the last: the reference moves it behind the mean,
// which it then adds up value by value.
bool is_turned(const ValueUses& uses, ValueId id) {
  const Node* turn = uses.maker(id, "Transpose");
  if (!turn) return false;
  const auto perm = turn->attributes.integers("perm");
  return !perm.empty() && perm.back() + 1 != static_cast<int64_t>(perm.size());
}

void use_activation(Node& node) {
  const auto name = node.attributes.text("activation");
  if (name == "Tanh") node.attributes.set("activation", std::string("TanhRatio"));
  if (name == "Swish" && node.attributes.number("activation_first") == 1)
    node.attributes.set("activation", std::string("SwishRatio"));
}

void convert(const Graph& graph, const ValueUses& uses, Node& node) {
  if (node.domain == "hologram") {
    use_activation(node);
    if (node.op == "Attention") node.attributes.set("ordered", int64_t{1});
    if (node.op == "Conv" && node.attributes.integers("weight_shape").size() == 3 &&
        node.attributes.integer("group", 1) == 1)
      node.attributes.set("algorithm",
                          static_cast<int64_t>(backends::dense::ConvAlgorithm::ordered));
    return;
  }
  if (!node.domain.empty() || node.inputs.empty() || !is_f32(graph, node.inputs[0])) return;
  if (node.op == "LayerNormalization")
    node.attributes.set("sum_order", int64_t{is_turned(uses, node.inputs[0]) ? 2 : 1});
  if (node.op == "InstanceNormalization") node.attributes.set("sum_order", int64_t{1});
  if (node.op == "MatMul") node.attributes.set("ordered", int64_t{1});
  if (node.op == "Tanh" || (node.op == "Swish" && node.attributes.number("alpha", 1) == 1)) {
    Attributes attributes;
    attributes.set("activation", node.op + "Ratio");
    node.attributes = std::move(attributes);
    node.op = "Activation";
    node.domain = "hologram";
  }
  if (node.op == "Sin" || node.op == "Cos") {
    node.attributes.set("quarters", int64_t{node.op == "Cos"});
    node.op = "Sine";
    node.domain = "hologram";
  }
}

void convert(Graph& graph) {
  const ValueUses uses(graph);
  for (Node& node : graph.nodes) {
    for (Subgraph& sub : node.subgraphs) convert(*sub.graph);
    convert(graph, uses, node);
  }
}

}  // namespace

void use_reference_order(Graph& graph) {
  if (quantises(graph)) convert(graph);
}

}  // namespace hologram::graph
