#include "graph/passes/fold_activation.h"

#include "graph/operator.h"
#include "graph/passes/fuse_epilogue.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

bool is_pointwise(const Node* node) {
  const Operator* entry = node ? operators().find(node->op, node->domain) : nullptr;
  return entry && entry->pointwise;
}

}  // namespace

void fold_activation(Graph& graph) {
  ValueUses uses(graph);
  for (Node& node : graph.nodes) {
    for (Subgraph& sub : node.subgraphs) fold_activation(*sub.graph);
    if (node.outputs.size() != 1 || node.inputs.empty() || !is_f32(graph, node.inputs[0]) ||
        is_pointwise(uses.maker(node.inputs[0])))
      continue;
    const size_t reader = uses.only_reader(node.outputs[0]);
    if (reader != ValueUses::kNone && is_pointwise(&graph.nodes[reader])) continue;
    Attributes attributes;
    if (!describe_activation(graph, node, attributes)) continue;
    node.op = "Activation";
    node.domain = "hologram";
    node.inputs.resize(1);
    node.attributes = std::move(attributes);
  }
}

}  // namespace hologram::graph
