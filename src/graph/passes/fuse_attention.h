// Makes one operator of attention: MatMul, scale, mask, Softmax, MatMul, however the queries, keys
// and values were cut, transposed and repeated on their way there. It reads them where the
// projections wrote them (hologram.Attention), and never writes the scores.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status fuse_attention(Graph& graph);

}  // namespace hologram::graph
