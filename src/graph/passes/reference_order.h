// Where a model quantises while it runs (DynamicQuantizeLinear), an activation that differs in its
// last bit may get the other one of two codes, a step of 1/255 of the range. There, f32 operators
// are told to add and to approximate as ONNX Runtime does, whose results such models are tested
// against; see docs/quantize.md. Runs after fusions and before layouts are assigned.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

void use_reference_order(Graph& graph);

}  // namespace hologram::graph
