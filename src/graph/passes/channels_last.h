// Keeps what convolutions of integers read and write with channels last, the order in which they
// work, also through element-wise operators between them. A value keeps its shape, [batch,
// channels, height, width]; only its memory is in another order, so every node that touches it must
// either know that or not care. Runs after assign_layout and before pointwise fusion.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status keep_channels_last(Graph& graph);

}  // namespace hologram::graph
