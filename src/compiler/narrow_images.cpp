#include "compiler/narrow_images.h"

#include <vector>

#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_conv(const Node& node) { return node.domain == "hologram" && node.op == "Conv"; }
bool by_bf16(const Node& node) { return is_conv(node) && node.attributes.integer("parts") == 1; }

// One kernel a channel, both images in blocks, nothing added: what reads and writes bf16.
bool is_depthwise(const Node& node) {
  if (!is_conv(node) || node.input(3) != graph::kNoValue) return false;
  const auto shape = node.attributes.integers("weight_shape");
  const int64_t groups = node.attributes.integer("group", 1);
  return groups > 1 && shape.size() > 2 && shape[0] == groups && shape[1] == 1 &&
         node.attributes.integer("blocked_input") != 0 &&
         node.attributes.integer("blocked_output") != 0 && node.attributes.integer("parts") == 0 &&
         node.attributes.integer("half") == 0;
}

bool writes_bf16(const Node& node) {
  return (by_bf16(node) && node.attributes.integer("blocked_output") != 0) || is_depthwise(node);
}

bool reads_bf16(const Node& node, size_t input) {
  if (input == 3) return by_bf16(node);
  return input == 0 &&
         (is_depthwise(node) || (by_bf16(node) && node.attributes.integer("blocked_input") != 0));
}

}  // namespace

size_t narrow_images(Graph& graph) {
  size_t narrowed = 0;
  for (Node& node : graph.nodes)
    for (graph::Subgraph& sub : node.subgraphs) narrowed += narrow_images(*sub.graph);
  // Readers that take bf16; the others (nodes, subgraphs, outputs) are the difference.
  const graph::ValueUses uses(graph);
  std::vector<size_t> good(graph.value_count(), 0);
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != graph::kNoValue && reads_bf16(node, i)) ++good[node.inputs[i]];
  for (Node& node : graph.nodes) {
    if (!writes_bf16(node)) continue;
    const ValueId made = node.outputs[0];
    if (good[made] == 0 || good[made] != uses.count(made)) continue;
    node.attributes.set("output", int64_t{static_cast<uint8_t>(DType::bf16)});
    graph.value(made).type.dtype = DType::bf16;
    ++narrowed;
  }
  return narrowed;
}

}  // namespace hologram::compiler
