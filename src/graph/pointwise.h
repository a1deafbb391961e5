// Pointwise nodes as one kernel program, in the form that kernels/pointwise.h describes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::graph {

// The inputs that a pointwise node's program is given: each once, and without the constants of one
// element that are written into the program. At least one, unless the node has none.
std::vector<ValueId> pointwise_inputs(const Graph& graph, const Node& node);

// A program that computes `nodes` (in order, all pointwise) from `inputs` to `outputs`. Every
// input of a node is one of `inputs`, an earlier node's output, a constant of one element, or left
// out.
Result<isa::Program> pointwise_program(const Graph& graph, std::span<const Node> nodes,
                                       std::span<const ValueId> inputs,
                                       std::span<const ValueId> outputs);

// The ways in which native code of a program will be called (kernels/pointwise.h): sets of inputs,
// bit k for input k, that are one element for a whole run of the output's last axis. 0, no such
// input, is always one of them unless it is certain that another serves.
std::vector<uint32_t> native_variants(const Graph& graph, std::span<const ValueId> inputs,
                                      ValueId output);
// The program that reads the inputs of `uniform` at index 0.
isa::Program with_uniform_inputs(const isa::Program& program, uint32_t uniform);

// "Mul+Add+Relu" for a fused node, the operator's name for another; at most a few dozen characters.
std::string pointwise_label(const Node& node);

}  // namespace hologram::graph
