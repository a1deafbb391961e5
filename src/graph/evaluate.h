// Evaluation of one node now, on constants: what folds constants in the compiler.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace hologram::graph {

// Inputs left out are empty values. Control flow and compositions are refused.
Result<std::vector<kernels::Value>> evaluate_node(const Graph& graph, const Node& node,
                                                  std::span<const kernels::Value> inputs);

}  // namespace hologram::graph
