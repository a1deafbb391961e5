// ConvPlan: a convolution, plain or transposed, as sums over taps of a padded image.
//
// A transposed convolution of stride s is s x s plain ones ("phases"), each of which writes every
// s-th output pixel from the taps that meet it. A plain convolution is one phase.
//
// The image a plan reads is either the input itself or a copy of it in scratch with zero margins:
//   blocked:      [group][channel block][height][width][16]
//   interleaved:  [group][height][width][channels]   few channels: a row of taps is one run of
//   values
#pragma once

#include <cstddef>

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

struct ConvPhase {
  size_t first_row, first_column;  // of the output
  size_t rows, columns;            // of this phase
  size_t tap_count;                // entries of the tap table
  size_t depth;                    // terms of a sum
  size_t weight_offset;            // of its panels within one group's packed weights, in floats
};

struct ConvPlan {
  ConvShape shape;
  bool transposed;
  bool interleaved;
  bool in_place;  // the image is the input
  size_t group_inputs, group_outputs;
  size_t in_step_y, in_step_x, out_step_y, out_step_x;
  ptrdiff_t top, left;   // margins before the input's first row and column in the image
  size_t height, width;  // of the image, margins included
  size_t pixel, block;   // floats from pixel to pixel, and from channel block to channel block
  size_t group_floats;   // of the image
  size_t run;            // consecutive values a tap sums: channels, or kernel_width * channels
  size_t group_weights;  // floats of a group's packed weights

  ConvPlan(const ConvShape& shape, Layout input, bool transposed);

  size_t phase_count() const { return out_step_y * out_step_x; }
  ConvPhase phase(size_t index) const;
  // Kernel positions of a phase, in the order of the packed weights; `offset` is from the image of
  // the phase's first pixel, in floats. Writes tap_count entries where the pointers are not null.
  struct Tap {
    size_t y, x;
    ptrdiff_t offset;
  };
  template <typename F>
  void for_each_tap(size_t phase, const F& f) const;
};

namespace detail {
// Where the output row `first`, plus `out_step` times i, meets kernel position k: at input row
// `at` + in_step * i. False if it meets it nowhere.
inline bool meet(bool transposed, size_t first, size_t k, size_t stride, size_t pad,
                 size_t dilation, ptrdiff_t& at) {
  const auto reach = static_cast<ptrdiff_t>(k * dilation), padding = static_cast<ptrdiff_t>(pad);
  if (!transposed) {
    at = static_cast<ptrdiff_t>(first * stride) - padding + reach;
    return true;
  }
  const ptrdiff_t place = static_cast<ptrdiff_t>(first) + padding - reach;
  const auto step = static_cast<ptrdiff_t>(stride);
  if ((place % step + step) % step != 0) return false;
  at = (place - (place % step + step) % step) / step;
  return true;
}
}  // namespace detail

template <typename F>
void ConvPlan::for_each_tap(size_t phase, const F& f) const {
  const ConvShape& s = shape;
  const size_t py = phase / out_step_x, px = phase % out_step_x;
  for (size_t y = 0; y < s.kernel_height; ++y) {
    ptrdiff_t row, column;
    if (!detail::meet(transposed, py, y, s.stride_height, s.pad_top, s.dilation_height, row))
      continue;
    for (size_t x = 0; x < (interleaved ? 1 : s.kernel_width); ++x) {
      if (!detail::meet(transposed, px, x, s.stride_width, s.pad_left, s.dilation_width, column))
        continue;
      const ptrdiff_t pixels = (row + top) * static_cast<ptrdiff_t>(width) + column + left;
      f(Tap{y, x, pixels * static_cast<ptrdiff_t>(pixel)});
    }
  }
}

}  // namespace hologram::backends::dense
