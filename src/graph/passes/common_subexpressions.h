// Common subexpressions: a node that computes what an earlier one has computed is replaced by it.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

// Also inside subgraphs, each for itself. Random operators, and nodes with subgraphs, stay. The
// nodes left without a reader are for remove_dead_code().
void merge_common_subexpressions(Graph& graph);

}  // namespace hologram::graph
