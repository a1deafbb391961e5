// Dead code: nodes whose results nothing reads.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

// Also inside subgraphs. Inputs of the graph stay.
void remove_dead_code(Graph& graph);

}  // namespace hologram::graph
