// MatMulInteger by a constant matrix, with the cast, scale, bias, activation and residual that
// follow it, becomes hologram.MatMulInteger, whose weights can be packed.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status fuse_epilogue_integer(Graph& graph);

}  // namespace hologram::graph
