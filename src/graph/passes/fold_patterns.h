// Recognises activations and normalisations that a model spells out in simpler operators, and puts
// the one operator of the standard in their place: Gelu (by erf and by tanh), Swish, HardSwish,
// RMSNormalization, LayerNormalization, squares. Only f32; the rest of the pattern becomes dead
// code.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

void fold_patterns(Graph& graph);

}  // namespace hologram::graph
