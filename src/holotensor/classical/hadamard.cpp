#include "holotensor/classical/hadamard.h"

#include <bit>
#include <cmath>
#include <cstddef>

namespace hologram::holotensor {

void hadamard(std::span<float> values) {
  float* __restrict data = values.data();
  const size_t n = values.size();
  size_t half = 1;
  // Two levels a pass: half the passes over the block. The innermost loops are plain sums of
  // neighbours at a stride, which the compiler vectorises.
  for (; half * 4 <= n; half *= 4) {
    for (size_t base = 0; base < n; base += 4 * half) {
      float* __restrict a = data + base;
      float* __restrict b = a + half;
      float* __restrict c = b + half;
      float* __restrict d = c + half;
      for (size_t i = 0; i < half; ++i) {
        const float sum_ab = a[i] + b[i], difference_ab = a[i] - b[i];
        const float sum_cd = c[i] + d[i], difference_cd = c[i] - d[i];
        a[i] = sum_ab + sum_cd;
        b[i] = difference_ab + difference_cd;
        c[i] = sum_ab - sum_cd;
        d[i] = difference_ab - difference_cd;
      }
    }
  }
  for (; half * 2 <= n; half *= 2) {
    for (size_t i = 0; i < half; ++i) {
      const float a = data[i], b = data[i + half];
      data[i] = a + b;
      data[i + half] = a - b;
    }
  }
  const float scale = static_cast<float>(std::sqrt(1.0 / static_cast<double>(n)));
  for (size_t i = 0; i < n; ++i) data[i] *= scale;
}

}  // namespace hologram::holotensor
