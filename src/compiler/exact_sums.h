// How exact the sums of convolutions of f32 are: f32 in parts, or where errors are measured f64,
// for networks that enlarge what f32 rounds off, or one chain of f32, for those that do not.
#pragma once

#include "compiler/precision.h"

namespace hologram::compiler {

// Gives convolutions of f32 the attribute `exact`, sums of f64 that are rounded once: the i-th that
// could have it where chosen[i] is not 0. Winograd gives way to direct sums there. Those of one
// pixel are left out: gates are exact anyway (join_gates). The choice counts them as `widened`, and
// as `narrow` those that could be.
PrecisionChoice choose_exact_sums(graph::Graph& graph, const std::vector<uint8_t>& chosen);

// Gives all that could be exact, but depthwise ones, whose sums are short, the attribute
// `long_sums`. How many there are.
size_t use_long_sums(graph::Graph& graph);

}  // namespace hologram::compiler
