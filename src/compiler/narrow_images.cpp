#include "compiler/narrow_images.h"

#include <vector>

#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

bool is_conv(const Node& node) { return node.domain == "hologram" && node.op == "Conv"; }
// Products that read and write bf16: of one part, or of bytes.
bool by_bf16(const Node& node) {
  return is_conv(node) &&
         (node.attributes.integer("parts") == 1 ||
          (node.attributes.integer("digits") == 1 && node.attributes.integer("digit_bits") == 0));
}

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

bool is(const Node& node, const char* op) { return node.domain == "hologram" && node.op == op; }
bool is_concat(const Node& node) { return node.domain.empty() && node.op == "Concat"; }

bool writes_bf16(const Node& node) {
  return (by_bf16(node) && node.attributes.integer("blocked_output") != 0) || is_depthwise(node) ||
         is(node, "Scale") || is(node, "Pool") || is(node, "Spread") || is_concat(node);
}

bool reads_bf16(const Node& node, size_t input) {
  if (is(node, "Scale")) return input >= 2;
  if (is(node, "Pool") || is(node, "Spread") || is(node, "GlobalAveragePool") || is_concat(node))
    return true;
  if (input == 3) return by_bf16(node);
  return input == 0 &&
         (is_depthwise(node) || (by_bf16(node) && node.attributes.integer("blocked_input") != 0));
}

class Narrower {
 public:
  Narrower(Graph& graph, const std::vector<bool>& wide_nodes)
      : graph_(graph), wide_nodes_(wide_nodes), narrow_(graph.value_count(), false) {}

  size_t run() {
    assume();
    while (withdraw()) {
    }
    size_t narrowed = 0;
    for (Node& node : graph_.nodes) {
      if (node.outputs.size() != 1 || !narrow_[node.outputs[0]]) continue;
      if (is_conv(node) || is(node, "Scale"))
        node.attributes.set("output", int64_t{static_cast<uint8_t>(DType::bf16)});
      graph_.value(node.outputs[0]).type.dtype = DType::bf16;
      ++narrowed;
    }
    return narrowed;
  }

 private:
  // Every value that its maker can write and all its readers can read.
  void assume() {
    const graph::ValueUses uses(graph_);
    // Readers that take bf16; the others (nodes, subgraphs, outputs) are the difference.
    std::vector<size_t> good(graph_.value_count(), 0);
    for (const Node& node : graph_.nodes)
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] != graph::kNoValue && reads_bf16(node, i)) ++good[node.inputs[i]];
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!writes_bf16(node) || (i < wide_nodes_.size() && wide_nodes_[i])) continue;
      const ValueId made = node.outputs[0];
      narrow_[made] = good[made] != 0 && good[made] == uses.count(made) && is_f32(graph_, made);
    }
  }

  // Values that have to be of one type: all of them stay what they are where one has to. Says
  // whether that took one back.
  bool withdraw() {
    bool changed = false;
    for (const Node& node : graph_.nodes) {
      const bool moves = is(node, "Pool") || is(node, "Spread") || is_concat(node);
      if (!moves && !is(node, "Scale")) continue;
      std::vector<ValueId> same(node.inputs.begin() + (moves ? 0 : 2), node.inputs.end());
      if (moves) same.push_back(node.outputs[0]);
      size_t narrow = 0;
      for (const ValueId id : same) narrow += id != graph::kNoValue && narrow_[id];
      if (narrow == same.size() || narrow == 0) continue;
      for (const ValueId id : same)
        if (id != graph::kNoValue) narrow_[id] = false;
      changed = true;
    }
    return changed;
  }

  Graph& graph_;
  const std::vector<bool>& wide_nodes_;
  std::vector<bool> narrow_;
};

}  // namespace

size_t narrow_images(Graph& graph, const std::vector<bool>& wide_nodes) {
  size_t narrowed = 0;
  for (Node& node : graph.nodes)
    for (graph::Subgraph& sub : node.subgraphs) narrowed += narrow_images(*sub.graph);
  return narrowed + Narrower(graph, wide_nodes).run();
}

}  // namespace hologram::compiler
