// Integers: what a model says about 8-bit tensors becomes products and convolutions of 8-bit
// integers with sums in i32, whose weights can be packed and whose result is quantised as it is
// made.
//
//   QLinearConv, QLinearMatMul, ConvInteger by constant weights
//   DequantizeLinear -> Conv, MatMul or Gemm -> [bias] -> [activation] -> QuantizeLinear, where the
//     weights are dequantised constants; without the last the result is f32
//   DequantizeLinear -> MaxPool, Reshape, Transpose, ... -> QuantizeLinear by one scale: on bytes
//
// Before constants are dequantised (quantised_weights.h). What has quantised operands and still
// runs in f32 is reported with the reason.
#pragma once

#include "graph/graph.h"
#include "graph/passes/fusion_report.h"

namespace hologram::graph {

Status fuse_integer(Graph& graph, FusionReport& report);

}  // namespace hologram::graph
