// Resolve: one walk that types every node, folds constants and expands compositions, so that each
// node sees all that is known of its inputs.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

// Subgraphs are resolved through their node (see ops/control_flow.cpp).
Status resolve(Graph& graph);

}  // namespace hologram::graph
