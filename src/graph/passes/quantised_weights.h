// Weights that a model stores in 4 or 8 bits and multiplies as f32: products by them become
// hologram.MatMul with the attributes `bits` and `group`, whose kernel reads the codes themselves.
//
//   MatMul or Gemm (x, DequantizeLinear(constant)), also by way of a Transpose     bits 4 or 8
//   com.microsoft.MatMulNBits                                                      bits 4 or 8
//   Gather(DequantizeLinear(constant), i) becomes DequantizeLinear(Gather(constant, i))
//
// Such constants, and those cast to f32, stay as they are until here (see resolve.cpp);
// fold_dequantised() makes f32 constants of those that no integer pass wanted.
#pragma once

#include <limits>

#include "graph/graph.h"

namespace hologram::graph {

// 8-bit constants of so many elements stay as they are in both passes: an archive that stores its
// weights as fragments can take codes apart, not what was made of them.
constexpr int64_t kNoneStay = std::numeric_limits<int64_t>::max();

Status use_quantised_weights(Graph& graph, int64_t stay_from = kNoneStay);

// Says whether anything was folded; what follows the constants is then to be resolved again.
Result<bool> fold_dequantised(Graph& graph, int64_t stay_from = kNoneStay);

// Whether resolve() leaves the node alone although all its inputs are constants.
bool is_quantised_weight(const Graph& graph, const Node& node);

// A matrix as codes of a byte each, 0..2^bits - 1, with scales and zeros [column][group]; empty
// zeros: all in the middle. In the order of the tensor: k x n, or n x k where `transposed`.
struct QuantisedMatrix {
  int64_t k = 0, n = 0, bits = 8, group = 0;  // group 0: a scale a column
  bool transposed = false;
  Tensor codes, scales;
  std::optional<Tensor> zeros;

  // The node of the domain "hologram" that multiplies by it; `bias` may be kNoValue.
  Node product(Graph& graph, const Node& from, ValueId a, ValueId bias) &&;
};

}  // namespace hologram::graph
