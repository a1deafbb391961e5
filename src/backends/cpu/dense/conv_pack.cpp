// Weights and inputs on their way into the forms of ConvPlan.
#include "backends/cpu/dense/conv_pack.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/image_rows.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/transpose.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

// One row of one group's image from nchw.
void pack_row_nchw(const ConvPlan& plan, size_t group, size_t block, size_t y, const float* input,
                   float* image) {
  const ConvShape& s = plan.shape;
  const size_t pixels = s.in_height * s.in_width;
  const size_t first = group * plan.group_inputs + block * kChannelBlock;
  const size_t count = std::min(plan.interleaved ? plan.group_inputs : kChannelBlock,
                                plan.group_inputs - block * kChannelBlock);
  transpose_block(count, s.in_width, input + first * pixels + y * s.in_width, pixels, image,
                  plan.pixel);
}

// The same from the blocked layout; a group may start inside a block.
void pack_row_blocked(const ConvPlan& plan, size_t group, size_t block, size_t y,
                      const float* input, float* image) {
  const ConvShape& s = plan.shape;
  const size_t pixels = s.in_height * s.in_width;
  const size_t first = group * plan.group_inputs + block * kChannelBlock;
  if (first % kChannelBlock == 0) {
    std::memcpy(image, input + first * pixels + y * s.in_width * kChannelBlock,
                s.in_width * kChannelBlock * sizeof(float));
    return;
  }
  const size_t count = std::min(kChannelBlock, plan.group_inputs - block * kChannelBlock);
  for (size_t i = 0; i < count; ++i) {
    const size_t channel = first + i;
    const float* from = input + channel / kChannelBlock * pixels * kChannelBlock +
                        y * s.in_width * kChannelBlock + channel % kChannelBlock;
    for (size_t x = 0; x < s.in_width; ++x) image[x * kChannelBlock + i] = from[x * kChannelBlock];
  }
}

}  // namespace

void pack_image(const ConvPlan& plan, Layout layout, const float* input, float* image,
                ThreadPool& pool) {
  const ConvShape& s = plan.shape;
  const size_t blocks = plan.interleaved ? 1 : channel_blocks(plan.group_inputs);
  const size_t row_floats = plan.width * plan.pixel;
  const size_t left = static_cast<size_t>(plan.left) * plan.pixel;
  const size_t right = left + s.in_width * plan.pixel;
  const auto run = [&](size_t index, size_t first, size_t count) {
    const size_t block = index % blocks, group = index / blocks;
    for (size_t row = first; row < first + count; ++row) {
      float* to = image + group * plan.group_floats + block * plan.block + row * row_floats;
      const ptrdiff_t y = static_cast<ptrdiff_t>(row) - plan.top;
      if (y < 0 || y >= static_cast<ptrdiff_t>(s.in_height)) {
        std::memset(to, 0, row_floats * sizeof(float));
        continue;
      }
      std::memset(to, 0, left * sizeof(float));
      std::memset(to + right, 0, (row_floats - right) * sizeof(float));
      (layout == Layout::nchw ? pack_row_nchw : pack_row_blocked)(
          plan, group, block, static_cast<size_t>(y), input, to + left);
    }
  };
  const size_t rows = s.groups * blocks * plan.height;
  for_image_rows(pool, s.groups * blocks, plan.height, plan.width,
                 rows * row_floats < 32768 ? 1 : 0, run);
}

void pack_weights(const ConvPlan& plan, const float* weights, float* packed) {
  const ConvShape& s = plan.shape;
  const size_t taps = s.kernel_height * s.kernel_width;
  const auto weight = [&](size_t group, size_t out, size_t in, size_t y, size_t x) {
    const size_t pair = plan.transposed
                            ? (group * plan.group_inputs + in) * plan.group_outputs + out
                            : (group * plan.group_outputs + out) * plan.group_inputs + in;
    return weights[pair * taps + y * s.kernel_width + x];
  };
  for (size_t g = 0; g < s.groups; ++g) {
    float* group = packed + g * plan.group_weights;
    for (size_t p = 0; p < plan.phase_count(); ++p) {
      const ConvPhase phase = plan.phase(p);
      float* to = group + phase.weight_offset;
      for (size_t column = 0; column < plan.group_outputs; column += kPanelColumns) {
        const size_t width =
            std::min<size_t>(kPanelColumns, align_up(plan.group_outputs, kChunk) - column);
        plan.for_each_tap(p, [&](const ConvPlan::Tap& tap) {
          for (size_t i = 0; i < plan.run; ++i, to += width) {
            const size_t in = i % plan.group_inputs, x = tap.x + i / plan.group_inputs;
            for (size_t j = 0; j < width; ++j)
              to[j] = column + j < plan.group_outputs ? weight(g, column + j, in, tap.y, x) : 0.0f;
          }
        });
      }
    }
  }
}

}  // namespace hologram::backends::dense
