#include "graph/passes/dead_code.h"

#include <algorithm>

namespace hologram::graph {

void remove_dead_code(Graph& graph) {
  std::vector<bool> live(graph.value_count(), false);
  for (ValueId id : graph.outputs) live[id] = true;
  std::vector<Node> kept;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return id != kNoValue && live[id]; }))
      continue;
    for (Subgraph& sub : node.subgraphs) {
      remove_dead_code(*sub.graph);
      for (const Graph::Capture& capture : sub.graph->captures) live[capture.outer] = true;
    }
    for (ValueId id : node.inputs)
      if (id != kNoValue) live[id] = true;
    kept.push_back(std::move(node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  std::erase_if(graph.captures, [&](const Graph::Capture& c) {
    return !live[c.inner] || graph.value(c.inner).constant;
  });
}

}  // namespace hologram::graph
