// Window: how kernels of convolutions and pools slide over the spatial axes of a tensor.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// One entry a spatial axis. Output position o meets tap k at input o * stride + k * dilation -
// pad_begin, which may lie outside the input.
struct Window {
  Dims input, size, stride, dilation, pad_begin, pad_end, output;

  // Output positions along the last axis; how many such rows there are.
  int64_t row_length() const { return output.back(); }
  int64_t rows() const { return output.product(0, output.rank() - 1); }
};

// One tap of the kernel over one row of output positions.
struct TapRun {
  int64_t tap;          // row-major number
  int64_t first, last;  // the positions [first, last) of the row for which the tap is inside
  int64_t offset;       // the input element under position 0 (which need not be inside)
};

// Calls f(TapRun) for every tap that meets row `row` inside the input, in order. Position i of the
// run meets input element offset + i * stride of the last axis: a loop that vectorises.
template <typename F>
void for_each_run(const Window& w, int64_t row, const F& f) {
  const size_t last = w.output.rank() - 1;
  // Taps [low, high) of an axis are inside: a window may reach far beyond its input.
  int64_t origin[kMaxRank], taps[kMaxRank], low[kMaxRank], high[kMaxRank];
  const auto taps_until = [&](size_t axis, int64_t distance) {
    return distance <= 0 ? 0 : std::min(w.size[axis], (distance - 1) / w.dilation[axis] + 1);
  };
  for (size_t axis = last; axis-- > 0; row /= w.output[axis]) {
    origin[axis] = row % w.output[axis] * w.stride[axis] - w.pad_begin[axis];
    taps[axis] = low[axis] = taps_until(axis, -origin[axis]);
    high[axis] = taps_until(axis, w.input[axis] - origin[axis]);
    if (low[axis] >= high[axis]) return;
  }
  const int64_t stride = w.stride[last], width = w.size[last], pad = w.pad_begin[last];
  const int64_t first_tap = taps_until(last, pad - (w.output[last] - 1) * stride);
  const int64_t last_tap = taps_until(last, w.input[last] + pad);
  while (true) {
    int64_t offset = 0, tap = 0;
    for (size_t axis = 0; axis < last; ++axis) {
      offset = offset * w.input[axis] + origin[axis] + taps[axis] * w.dilation[axis];
      tap = tap * w.size[axis] + taps[axis];
    }
    tap *= width;
    for (int64_t k = first_tap; k < last_tap; ++k) {
      const int64_t shift = k * w.dilation[last] - pad;
      const int64_t room = w.input[last] - 1 - shift;
      const int64_t first = shift < 0 ? (stride - 1 - shift) / stride : 0;
      const int64_t end = room < 0 ? 0 : std::min(w.output[last], room / stride + 1);
      if (first < end) f(TapRun{tap + k, first, end, offset * w.input[last] + shift});
    }
    size_t axis = last;
    while (axis > 0 && ++taps[axis - 1] == high[axis - 1]) --axis, taps[axis] = low[axis];
    if (axis == 0) return;
  }
}

// Reads strides, dilations, pads and auto_pad of a node. `input` and `size` have one entry a
// spatial axis. `ceil_mode`: a last window that is only partly inside counts, if it does not start
// in the padding at the end.
Result<Window> make_window(const KernelContext& c, const Dims& input, const Dims& size,
                           bool ceil_mode = false);

// The same from plain lists, which may be empty: also for shape inference.
Result<Window> make_window(std::string_view auto_pad, std::span<const int64_t> strides,
                           std::span<const int64_t> dilations, std::span<const int64_t> pads,
                           const Dims& input, const Dims& size, bool ceil_mode);

// The window of a transposed convolution, seen from its result: `input` is the result's size and
// `output` the node's input, so that for_each_run says where each product is added.
Result<Window> make_transposed_window(const KernelContext& c, const Dims& input, const Dims& size);

// Whether the lists of a node fit `rank` spatial axes and are in range.
Status check_window(std::string_view auto_pad, std::span<const int64_t> size,
                    std::span<const int64_t> strides, std::span<const int64_t> dilations,
                    std::span<const int64_t> pads, size_t rank);

// The axes after the first two.
inline Dims spatial_dims(const Dims& dims) {
  return dims.rank() < 2 ? Dims() : Dims(std::span(dims.begin() + 2, dims.rank() - 2));
}

}  // namespace hologram::kernels
