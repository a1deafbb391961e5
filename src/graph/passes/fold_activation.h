// An activation that stands alone, with no element-wise neighbour to be fused with, becomes
// hologram.Activation: the vector code of the epilogues instead of an interpreted program. Runs
// before element-wise nodes are fused.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

void fold_activation(Graph& graph);

}  // namespace hologram::graph
