// Rotary position embedding spelled out, x * cos + [-x2, x1] * sin with constant angles, becomes
// hologram.Rotary in the layout of the projection x was cut from, [batch, rows, heads * depth].
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status fold_rotary(Graph& graph);

}  // namespace hologram::graph
