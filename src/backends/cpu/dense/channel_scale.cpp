#include "backends/cpu/dense/channel_scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/direct_epilogue.h"
#include "backends/cpu/dense/image_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/channel_scale.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/math-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

// `pixels` pixels of one block.
void scale_run(const ChannelScale& s, const float* scale, const float* rest, const float* bias,
               size_t pixels, const float* x, float* y) {
  const hn::CappedTag<float, kChannelBlock> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  with_activation(d, s.activation, s.first, s.second, [&](auto function) HWY_ATTR {
    for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      const V factor = scale ? hn::LoadU(d, scale + lane) : hn::Set(d, 1.0f);
      const V shift = bias ? hn::LoadU(d, bias + lane) : hn::Zero(d);
      const V fine = rest ? hn::LoadU(d, rest + lane) : hn::Zero(d);
      for (size_t i = 0; i < pixels; ++i) {
        const size_t at = i * kChannelBlock + lane;
        const V value = hn::LoadU(d, x + at);
        const V scaled = s.plus_one ? hn::MulAdd(value, factor, value)
                         : bias     ? hn::MulAdd(value, factor, shift)
                         : rest     ? hn::MulAdd(value, factor, hn::Mul(value, fine))
                                    : hn::Mul(value, factor);
        hn::StoreU(function(scaled), d, y + at);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(scale_run);

void channel_scale(const ChannelScale& s, ThreadPool& pool) {
  const auto run_block = HWY_DYNAMIC_DISPATCH(scale_run);
  const ClipRange clip =
      clip_range({.activation = s.activation, .first = s.first, .second = s.second});
  const detail::ScaleFunction quick =
      clip.clips || s.activation == Activation::none ? detail::avx512_bf16_scale() : nullptr;
  size_t blocks = 0;
  for (size_t p = 0; p < s.part_count; ++p) blocks += s.parts[p].blocks;
  const auto run = [&](size_t job, size_t first, size_t count) {
    const size_t n = job / blocks, block = job % blocks;
    size_t part = 0, local = block;
    while (local >= s.parts[part].blocks) local -= s.parts[part++].blocks;
    const size_t channel = n * s.scale_batch + block * kChannelBlock;
    const float* scale = s.scale ? s.scale + channel : nullptr;
    const float* rest = s.scale_rest ? s.scale_rest + channel : nullptr;
    const float* bias = s.bias ? s.bias + block * kChannelBlock : nullptr;
    const ChannelScale::Part& from = s.parts[part];
    const size_t x = ((n * from.blocks + local) * s.pixels + first) * kChannelBlock;
    const size_t y = (job * s.pixels + first) * kChannelBlock;
    if (!from.x_bf16 && !s.y_bf16)
      return run_block(s, scale, rest, bias, count, from.x + x, s.y + y);
    if (quick && from.x_bf16 && s.y_bf16) {
      static constexpr auto same = [](float value) {
        std::array<float, kChannelBlock> all{};
        all.fill(value);
        return all;
      };
      // Of nothing -0 is added: the sign of a zero stays.
      static constexpr auto kOnes = same(1.0f), kNothing = same(-0.0f);
      std::array<float, kChannelBlock> larger;
      if (s.plus_one)
        scale = std::transform(scale, scale + kChannelBlock, larger.data(),
                               [](float v) { return v + 1.0f; }) -
                kChannelBlock;
      return quick({.from = from.x_bf16 + x,
                    .pixels = count,
                    .scale = scale ? scale : kOnes.data(),
                    .shift = bias ? bias : kNothing.data(),
                    .low = clip.clips ? clip.low : -HUGE_VALF,
                    .high = clip.clips ? clip.high : HUGE_VALF,
                    .to = s.y_bf16 + y});
    }
    // What is not f32 passes through memory that stays in the first cache.
    constexpr size_t kPixels = 64;
    alignas(64) float values[kPixels * kChannelBlock];
    for (size_t i = 0; i < count; i += kPixels) {
      const size_t pixels = std::min(kPixels, count - i), floats = pixels * kChannelBlock;
      const size_t at = i * kChannelBlock;
      float* to = s.y_bf16 ? values : s.y + y + at;
      if (from.x_bf16) widen_values(from.x_bf16 + x + at, floats, values);
      run_block(s, scale, rest, bias, pixels, from.x_bf16 ? values : from.x + x + at, to);
      if (s.y_bf16) narrow_values(values, floats, s.y_bf16 + y + at);
    }
  };
  const size_t jobs = s.batch * blocks;
  for_image_rows(pool, jobs, s.pixels, 1, jobs * s.pixels * kChannelBlock < 32768 ? 1 : 0, run);
}

}  // namespace hologram::backends::dense
#endif
