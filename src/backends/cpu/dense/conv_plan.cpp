#include "backends/cpu/dense/conv_plan.h"

#include <algorithm>

#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

// The rows (or columns) of the input that any output needs: how far they start before the first and
// how many there are from there.
struct Extent {
  ptrdiff_t before;
  size_t size;
};
Extent extent(bool transposed, size_t in, size_t out, size_t kernel, size_t stride, size_t pad,
              size_t dilation) {
  ptrdiff_t low = 0, high = static_cast<ptrdiff_t>(in);
  if (out == 0) return {0, in};
  const size_t phases = transposed ? std::min(stride, out) : 1;
  for (size_t first = 0; first < phases; ++first) {
    const size_t count = transposed ? (out - first + stride - 1) / stride : out;
    for (size_t k = 0; k < kernel; ++k) {
      ptrdiff_t at;
      if (!detail::meet(transposed, first, k, stride, pad, dilation, at)) continue;
      low = std::min(low, at);
      const size_t step = transposed ? 1 : stride;
      high = std::max(high, at + static_cast<ptrdiff_t>((count - 1) * step) + 1);
    }
  }
  return {-low, static_cast<size_t>(high - low)};
}

}  // namespace

ConvPlan::ConvPlan(const ConvShape& s, Layout input, bool transposed)
    : shape(s),
      transposed(transposed),
      group_inputs(s.in_channels / s.groups),
      group_outputs(s.out_channels / s.groups),
      in_step_y(transposed ? 1 : s.stride_height),
      in_step_x(transposed ? 1 : s.stride_width),
      out_step_y(transposed ? s.stride_height : 1),
      out_step_x(transposed ? s.stride_width : 1) {
  const Extent rows = extent(transposed, s.in_height, s.out_height, s.kernel_height,
                             s.stride_height, s.pad_top, s.dilation_height);
  const Extent columns = extent(transposed, s.in_width, s.out_width, s.kernel_width, s.stride_width,
                                s.pad_left, s.dilation_width);
  // Blocks of 16 would be mostly empty, and a tap's sum too short for the loop around it.
  interleaved = !transposed && input == Layout::nchw && group_inputs <= 8 && s.kernel_width > 1 &&
                s.dilation_width == 1;
  top = rows.before;
  left = columns.before;
  height = rows.size;
  width = columns.size;
  in_place = input == Layout::blocked && height == s.in_height && width == s.in_width &&
             (s.groups == 1 || group_inputs % kChannelBlock == 0);
  pixel = interleaved ? group_inputs : kChannelBlock;
  block = height * width * kChannelBlock;
  group_floats = interleaved ? align_up(height * width * group_inputs, kChannelBlock)
                             : channel_blocks(group_inputs) * block;
  run = interleaved ? s.kernel_width * group_inputs : group_inputs;
  group_weights =
      s.kernel_height * s.kernel_width * group_inputs * align_up(group_outputs, kChannelBlock);
}

ConvPhase ConvPlan::phase(size_t index) const {
  ConvPhase p{index / out_step_x, index % out_step_x, 0, 0, 0, 0, 0};
  if (p.first_row < shape.out_height && p.first_column < shape.out_width) {
    p.rows = (shape.out_height - p.first_row + out_step_y - 1) / out_step_y;
    p.columns = (shape.out_width - p.first_column + out_step_x - 1) / out_step_x;
  }
  const size_t columns = align_up(group_outputs, kChannelBlock);
  for (size_t i = 0; i <= index; ++i) {
    size_t taps = 0;
    for_each_tap(i, [&](const Tap&) { ++taps; });
    if (i < index)
      p.weight_offset += taps * run * columns;
    else
      p.tap_count = taps;
  }
  p.depth = p.tap_count * run;
  return p;
}

}  // namespace hologram::backends::dense
