// Reductions in f32 over the middle of (outer, n, inner): y has outer * inner values.
//
// The tree of a sum depends on n (and on whether inner is 1) alone. NaN wins a minimum or maximum.
#pragma once

#include <cstddef>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

enum class Reduction : unsigned char {
  sum,
  mean,
  max,
  min,
  product,
  sum_of_squares,
  sum_of_magnitudes,  // L1
  root_of_squares,    // L2
};

// n == 0 gives the neutral element: 0, 1 for the product, -+infinity for max and min, NaN for mean.
void reduce(Reduction reduction, size_t outer, size_t n, size_t inner, const float* x, float* y,
            ThreadPool& pool);

}  // namespace hologram::backends::dense
