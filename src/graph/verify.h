// The graph's verifier: what must hold between passes.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

// Every value is written once and before it is read; ids exist; captures lead outwards; outputs
// are written. verify_error otherwise.
Status verify(const Graph& graph);

}  // namespace hologram::graph
