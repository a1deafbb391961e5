// Puts a 1 x 1 convolution and the depthwise one that alone reads its result into one step, where
// the image between them is large: it then never leaves the near caches. Runs when weights are
// packed and precisions are chosen; both keep theirs. See dense/conv_joined.h.
#pragma once

#include "graph/graph.h"
#include "graph/passes/fusion_report.h"

namespace hologram::compiler {

void join_convolutions(graph::Graph& graph, graph::FusionReport& report);

}  // namespace hologram::compiler
