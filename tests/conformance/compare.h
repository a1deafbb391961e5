// Whether a result is the expected one.
#pragma once

#include "backends/cpu/kernels/tensor.h"
#include "support/result.h"

namespace hologram::conformance {

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

// Floats: |actual - expected| <= absolute + relative * |expected|, NaN equal to NaN. Everything
// else exactly. The error says where and by how much.
Status compare(const kernels::Value& actual, const kernels::Value& expected,
               const Tolerance& tolerance);

}  // namespace hologram::conformance
