// Pointwise nodes as one kernel program, in the form that kernels/pointwise.h describes.
#pragma once

#include <span>

#include "graph/graph.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::graph {

// A program that computes `nodes` (in order, all pointwise) from `inputs` to `outputs`. Every
// input of a node is one of `inputs`, an earlier node's output, or left out.
Result<isa::Program> pointwise_program(const Graph& graph, std::span<const Node> nodes,
                                       std::span<const ValueId> inputs,
                                       std::span<const ValueId> outputs);

}  // namespace hologram::graph
