// Folds what multiplies and shifts the channels of a convolution into its weights and bias:
// BatchNormalization, and Mul, Add, Sub and Div by constants of one value or one a channel. Works
// in f64 and rounds once. Only f32, constant weights, and results that nothing else reads.
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
