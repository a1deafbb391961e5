#include "backends/cpu/dense/digit_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

void collect(const float* from, size_t step, size_t pixels, size_t count, int32_t* most,
             size_t most_step) {
  for (size_t p = 0; p < pixels; ++p)
    for (size_t i = 0; i < count; ++i)
      most[p * most_step + i] = std::max(most[p * most_step + i],
                                         std::bit_cast<int32_t>(from[p * step + i]) & 0x7fffffff);
}

int32_t most_of(const int32_t* most) { return *std::max_element(most, most + kDigitRun); }

void pixel_digits(const DigitPixels& t) {
  for (size_t run = 0; run < t.pixels * t.runs; ++run) {
    const size_t pixel = run / t.runs, first = run % t.runs * kDigitRun;
    const float* from = t.from + pixel * t.step + run % t.runs * t.block;
    const size_t to = run / 4 * t.chunk + run % 4 * kDigitRun;
    for (size_t i = 0; i < kDigitRun; ++i) {
      const float value = first + i < t.count ? from[i] * t.factors[pixel * t.factor_step] : 0.0f;
      // What is not finite has the factor 0, and no digits are right for it.
      const int q = std::isnan(value) ? 0 : static_cast<int>(std::nearbyint(value));
      t.upper[to + i] = static_cast<uint8_t>((q + 128) >> 8);
      t.lower[to + i] = static_cast<uint8_t>(q);
    }
  }
}

void scale_sums(void* sums, size_t rows, size_t width, const float* row_scales, size_t row_step,
                const float* scales) {
  auto* at = static_cast<int32_t*>(sums);
  for (size_t r = 0; r < rows; ++r)
    for (size_t j = 0; j < width; ++j, ++at) {
      const float sum = 256.0f * static_cast<float>(at[0]) + static_cast<float>(at[kDigitSums]);
      *at = std::bit_cast<int32_t>(sum * (row_scales[r * row_step] * scales[j]));
    }
}

}  // namespace

DigitFunctions digit_functions() {
#if defined(__x86_64__)
  if (unit_kernels().avx512) return detail::avx512_digits();
#endif
  return {&collect, &most_of, &pixel_digits, &scale_sums};
}

DigitScale::DigitScale(int32_t largest) {
  constexpr float kMost = 127 * 256;  // the largest number whose upper digit, rounded, is 127
  constexpr float kTiny = 1e-30f;
  const float value = std::bit_cast<float>(largest);
  if (largest >= 0x7f800000)
    back = std::numeric_limits<float>::quiet_NaN();
  else if (value > kTiny)
    factor = kMost / value, back = value / kMost * 16;
}

}  // namespace hologram::backends::dense
