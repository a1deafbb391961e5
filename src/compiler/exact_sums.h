// Convolutions of f32 whose sums are f64: for networks that enlarge what f32 rounds off.
#pragma once

#include "compiler/precision.h"

namespace hologram::compiler {

// Gives convolutions of f32 the attribute `exact`, sums of f64 that are rounded once: the i-th that
// could have it where chosen[i] is not 0. Winograd gives way to direct sums there. Those of one
// pixel are left out: gates are exact anyway (join_gates). The choice counts them as `widened`, and
// as `narrow` those that could be.
PrecisionChoice choose_exact_sums(graph::Graph& graph, const std::vector<uint8_t>& chosen);

}  // namespace hologram::compiler
