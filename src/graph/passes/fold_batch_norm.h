// Folds what multiplies and shifts the channels of a convolution into its weights and bias:
// BatchNormalization, and Mul, Add, Sub and Div by constants of one value or one a channel. Works
// in f64 and rounds once. Only f32, constant weights, and results that nothing else reads.
//
// The error of a constant is the same for every pixel, so that the sums of later layers keep it,
// and few are as large as that of a bias. What rounding takes from a bias is therefore added by a
// node of its own, which fuse_epilogue makes part of the convolution.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

Status fold_batch_norm(Graph& graph);

// y = scale * x + shift of a BatchNormalization whose parameters are constants.
struct ChannelAffine {
  std::vector<double> scale, shift;
};
std::optional<ChannelAffine> batch_norm_affine(const Graph& graph, const Node& node);

}  // namespace hologram::graph
