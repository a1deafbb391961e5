// Chooses the layout of images once for the whole graph: what convolutions, pools and everything
// between them touch is kept in blocks of 16 channels, [batch, blocks, height, width, 16], and
// converted only where an operator needs the plain form. Runs after fuse_epilogue.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status assign_layout(Graph& graph);

}  // namespace hologram::graph
