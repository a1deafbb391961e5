// Replacements: values that a pass has put in the place of others.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "graph/graph.h"

namespace hologram::graph {

class Replacements {
 public:
  void replace(ValueId value, ValueId by) { by_[value] = by; }
  bool empty() const { return by_.empty(); }

  // What stands for a value now.
  ValueId operator()(ValueId id) const {
    for (auto it = by_.find(id); it != by_.end(); it = by_.find(id)) id = it->second;
    return id;
  }
  // In what a node reads: its inputs, and what its subgraphs capture.
  void apply(Node& node) const {
    for (ValueId& id : node.inputs) id = (*this)(id);
    for (Subgraph& sub : node.subgraphs)
      for (Graph::Capture& capture : sub.graph->captures) capture.outer = (*this)(capture.outer);
  }
  void apply_outputs(Graph& graph) const {
    for (ValueId& id : graph.outputs) id = (*this)(id);
  }

 private:
  std::unordered_map<ValueId, ValueId> by_;
};

// An output of a graph stays a value of its own that a node makes, not an input under another name
// or one value twice: who runs the graph may place every output where the caller wants it.
inline bool is_output(const Graph& graph, ValueId id) {
  return std::ranges::find(graph.outputs, id) != graph.outputs.end();
}

}  // namespace hologram::graph
