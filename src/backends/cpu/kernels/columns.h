// Columns: an image unrolled so that a convolution is a matrix product, and the way back.
// One row a tap of the kernel, one column an output position.
#pragma once

#include <algorithm>

#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

// rows[tap][position] of one channel; zero where the tap lies outside.
template <typename T>
void unroll(const T* channel, const Window& w, T* rows) {
  const int64_t positions = w.output.count(), length = w.row_length(), stride = w.stride.back();
  std::fill_n(rows, w.size.count() * positions, T(0));
  for (int64_t row = 0; row < w.rows(); ++row)
    for_each_run(w, row, [&](const TapRun& r) {
      T* to = rows + r.tap * positions + row * length;
      for (int64_t i = r.first; i < r.last; ++i) to[i] = channel[r.offset + i * stride];
    });
}

// channel[...] += rows[tap][position], where the tap is inside. In order: the same bits each time.
template <typename T>
void fold(const T* rows, const Window& w, T* channel) {
  const int64_t positions = w.output.count(), length = w.row_length(), stride = w.stride.back();
  for (int64_t row = 0; row < w.rows(); ++row)
    for_each_run(w, row, [&](const TapRun& r) {
      const T* from = rows + r.tap * positions + row * length;
      for (int64_t i = r.first; i < r.last; ++i) {
        T& to = channel[r.offset + i * stride];
        to = static_cast<T>(to + from[i]);
      }
    });
}

}  // namespace hologram::kernels
