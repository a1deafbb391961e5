// Weights of products as codes of 4 or 8 bits: what --precision int8 and int4 do.
#pragma once

#include "compiler/precision.h"

namespace hologram::compiler {

// Replaces f32 weights of hologram.MatMul by codes (attribute `bits`; see gemm_bits.h and, for
// int8, gemm_narrow.h). Convolutions stay as they are: their ranges have to be measured first,
// which is what `hologram quantize` does. Before packing.
Result<PrecisionChoice> use_weight_codes(graph::Graph& graph, Precision precision);

// Whether the weights of a product or a convolution are f32 constants, all of them finite.
bool has_finite_weights(const graph::Graph& graph, const graph::Node& node);
// What int8 does, of one product that has.
Status use_byte_weights(graph::Graph& graph, graph::Node& node);

}  // namespace hologram::compiler
