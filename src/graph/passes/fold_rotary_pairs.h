// Rotary embedding of neighbouring elements, as some models spell it out:
//     x * cos + interleave(-x[1::2], x[0::2]) * sin
// of the first elements of the last axis, the others passed on, becomes hologram.RotaryPairs.
// (fold_rotary.h has the other kind, which turns the halves of a head.)
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

void fold_rotary_pairs(Graph& graph);

}  // namespace hologram::graph
