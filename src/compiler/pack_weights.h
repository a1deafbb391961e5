// Puts constant weights of products and convolutions into the form their kernels read, so that a
// run packs nothing and the archive's map is used as it is. Runs last, after layouts are chosen.
// The forms are those of dense/gemm.h and dense/conv.h, the same on every CPU level.
#pragma once

#include "graph/graph.h"

namespace hologram::compiler {

Status pack_weights(graph::Graph& graph);

}  // namespace hologram::compiler
