// Puts constant weights of products and convolutions into the form their kernels read, so that a
// run packs nothing and the archive's map is used as it is. Runs last, after layouts are chosen.
// The forms are those of dense/gemm.h and dense/conv.h, the same on every CPU level.
//
// 8-bit weights of `stay_from` elements or more stay as they are: beside them the packed form has
// their columns' sums, which weights that come as fragments do not have once and for all.
#pragma once

#include "graph/graph.h"

namespace hologram::compiler {

Status pack_weights(graph::Graph& graph, int64_t stay_from);

}  // namespace hologram::compiler
