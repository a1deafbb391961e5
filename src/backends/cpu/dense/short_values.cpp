#include "backends/cpu/dense/short_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

void units(const ShortPixels& p, float* units) {
  for (size_t i = 0; i < p.pixels; ++i) {
    ShortPixels one = p;
    one.from += i * p.step;
    units[i] = detail::careful_unit(one);
  }
}

void pixel_runs(const ShortRuns& t) {
  const ShortPixels& v = t.values;
  for (size_t run = 0; run < v.pixels * t.runs; ++run) {
    const size_t pixel = run / t.runs, first = run % t.runs * kShortRun;
    const float* from = v.from + pixel * v.step + run % t.runs * v.block;
    int16_t* to = t.to + run / 2 * (t.chunk / sizeof(int16_t)) + run % 2 * kShortRun;
    for (size_t i = 0; i < kShortRun; ++i) {
      const float value = first + i < v.count ? from[i] * t.factors[pixel * t.factor_step] : 0.0f;
      // What is not finite has the factor 0, and no integer is right for it.
      to[i] = std::isnan(value) ? int16_t{0} : static_cast<int16_t>(std::nearbyint(value));
    }
  }
}

void scale_sums(float* sums, size_t rows, size_t width, const float* row_scales, size_t row_step,
                const float* scales) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t j = 0; j < width; ++j, ++sums) *sums *= row_scales[r * row_step] * scales[j];
}

}  // namespace

float detail::careful_unit(const ShortPixels& p) {
  double squares = 0, largest = 0;
  for (size_t first = 0; first < p.count; first += kShortRun) {
    double sum = 0;
    for (size_t i = 0; i < std::min(kShortRun, p.count - first); ++i) {
      const double value = p.from[first / kShortRun * p.block + i];
      if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
      sum += value * value;
      largest = std::max(largest, std::abs(value));
    }
    squares = std::max(squares, sum);
  }
  return static_cast<float>(std::max(std::sqrt(squares) / kShortNorm, largest / kMostShort));
}

ShortFunctions short_functions() {
#if defined(__x86_64__)
  if (unit_kernels().avx512) return detail::avx512_shorts();
#endif
  return {&units, &pixel_runs, &scale_sums};
}

ShortScale::ShortScale(float unit) {
  constexpr float kTiny = 1e-35f;
  if (!std::isfinite(unit))
    back = std::numeric_limits<float>::quiet_NaN();
  else if (unit > kTiny)
    factor = 1 / unit, back = unit;
}

}  // namespace hologram::backends::dense
