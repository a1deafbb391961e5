// Puts squeeze and excitation (the mean of an image, two 1 x 1 convolutions of it, and the image
// times the result) into one step, which computes all between the image and the product in f64.
// Runs when weights are packed and precisions are chosen. See dense/gate.h.
#pragma once

#include "graph/graph.h"
#include "graph/passes/fusion_report.h"

namespace hologram::compiler {

void join_gates(graph::Graph& graph, graph::FusionReport& report);

}  // namespace hologram::compiler
