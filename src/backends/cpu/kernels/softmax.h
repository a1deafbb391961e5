// Softmax of one line, for the kernels that have one.
#pragma once

#include <cstdint>

#include "support/dtype.h"

namespace hologram::kernels {

// `value` as the type f16 or bf16 holds it; itself for any other.
float rounded_to(DType type, float value);

// Softmax in f16 or bf16 of values of that type, kept as f32: each step of the definition
// (difference, exponential, sum, quotient) is rounded to the type, as it is where the definition's
// operators run one by one and as the standard's own results are. A sum in f16 is rounded once; one
// in bf16 after each of 32 terms, beyond which partial sums are added in f32: longer sums would
// stop growing. In place is fine; a line of -inf alone becomes NaN, as the definition has it.
void softmax_in(DType type, const float* x, float* y, int64_t n, int64_t stride);

}  // namespace hologram::kernels
