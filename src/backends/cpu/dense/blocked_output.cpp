#include "backends/cpu/dense/blocked_output.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/conv_image.h"
#include "backends/cpu/dense/unit_tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {

BlockedOutput::BlockedOutput(const ConvShape& s, const Target& target, float* bias)
    : target_(target),
      block_(target.plane ? target.plane : s.out_height * s.out_width * kChannelBlock),
      sample_(channel_blocks(s.out_channels) * block_),
      outputs_(align_up(s.out_channels, kChannelBlock)),
      local_(target.bf16 || target.residual_bf16) {
  Epilogue& epilogue = target_.epilogue;
  pad_bias(s, epilogue, bias);
  // The epilogue has to know that there is a residual; where it lies is the tile's business.
  if (target.residual_bf16)
    epilogue.residual = reinterpret_cast<const float*>(target.residual_bf16);
  // Most need no memory between.
  const bool silu = epilogue.activation == Activation::silu && epilogue.first == 1.0f;
  const bool leaky = epilogue.activation == Activation::leaky_relu && epilogue.first >= 0.0f &&
                     epilogue.first <= 1.0f;
  Epilogue linear = epilogue;
  if (silu || leaky) linear.activation = Activation::none;
  if (!silu) linear.post = false;
  if (target.bf16 && is_direct(linear) && (!epilogue.residual || target.residual_bf16))
    quick_ = silu                     ? detail::avx512_bf16_finish_silu()
             : leaky || epilogue.post ? detail::avx512_bf16_finish_more()
                                      : detail::avx512_bf16_finish();
  slope_ = leaky ? epilogue.first : 1.0f;
  clip_ = clip_range(epilogue);
}

void BlockedOutput::finish(size_t sample, size_t pixel, size_t count, size_t column, float* sums,
                           size_t width) const {
  const Epilogue& epilogue = target_.epilogue;
  Tile tile;
  tile.rows = count;
  // Whole blocks are written; the lanes beyond the channels receive what falls out.
  tile.columns = std::min(width, outputs_ - column);
  tile.column = column;
  tile.epilogue = &epilogue;
  tile.offset = sample * sample_ + column / kChannelBlock * block_ + pixel * kChannelBlock;
  if (quick_) {
    quick_({.sums = sums,
            .rows = count,
            .columns = tile.columns,
            .width = width,
            .bias = epilogue.bias ? epilogue.bias + column : nullptr,
            .residual = target_.residual_bf16 ? target_.residual_bf16 + tile.offset : nullptr,
            .low = clip_.clips ? clip_.low : -HUGE_VALF,
            .high = clip_.clips ? clip_.high : HUGE_VALF,
            .slope = slope_,
            .scale = epilogue.post ? epilogue.post_scale : 1.0f,
            .shift = epilogue.post ? epilogue.post_shift : 0.0f,
            .least = epilogue.post ? epilogue.post_low : -HUGE_VALF,
            .to = static_cast<uint16_t*>(target_.image) + tile.offset,
            .block = static_cast<ptrdiff_t>(block_)});
    return;
  }
  alignas(64) float values[kMaxUnitRows * kPanelColumns], other[kMaxUnitRows * kPanelColumns];
  const size_t run = count * kChannelBlock;
  tile.c_row = tile.residual_row = kChannelBlock;
  tile.c = local_ ? values : static_cast<float*>(target_.image) + tile.offset;
  tile.c_block = static_cast<ptrdiff_t>(local_ ? run : block_);
  if (epilogue.residual) tile.residual = local_ ? other : epilogue.residual + tile.offset;
  // Of each block of channels: what lies here, and where it belongs.
  const auto each_block = [&](float* here, auto body) {
    for (size_t c = 0; c < tile.columns; c += kChannelBlock)
      body(here + c * count, tile.offset + c / kChannelBlock * block_);
  };
  if (target_.residual_bf16)
    each_block(other,
               [&](float* to, size_t at) { widen_values(target_.residual_bf16 + at, run, to); });
  else if (local_ && epilogue.residual)
    each_block(other, [&](float* to, size_t at) {
      std::memcpy(to, epilogue.residual + at, run * sizeof(float));
    });
  kernel_.finish(tile, sums, width);
  if (target_.bf16)
    each_block(values, [&](const float* from, size_t at) {
      narrow_values(from, run, static_cast<uint16_t*>(target_.image) + at);
    });
  else if (local_)
    each_block(values, [&](const float* from, size_t at) {
      std::memcpy(static_cast<float*>(target_.image) + at, from, run * sizeof(float));
    });
}

}  // namespace hologram::backends::dense
