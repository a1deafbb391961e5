// Gives convolutions and products by constant matrices what follows them: a bias, an activation, a
// residual that is added. Conv, MatMul and Gemm in f32 become the operators of the domain
// "hologram" (see ops/dense.cpp), also where nothing follows, so that their weights can be packed.
// Reshapes around a product disappear into it.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status fuse_epilogue(Graph& graph);

// Whether `node` is an activation that an epilogue has, of its first input; sets the attributes
// activation, activation_first and activation_second.
bool describe_activation(const Graph& graph, const Node& node, Attributes& attributes);

// The bounds of a Clip by constants, in either of its forms; nothing for any other node.
struct ClipBounds {
  double low, high;
};
std::optional<ClipBounds> clip_bounds(const Graph& graph, const Node& node);

}  // namespace hologram::graph
