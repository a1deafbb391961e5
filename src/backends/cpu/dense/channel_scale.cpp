#include "backends/cpu/dense/channel_scale.h"

#include <algorithm>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/conv.h"

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
void scale_run(const ChannelScale& s, const float* scale, const float* bias, size_t pixels,
               const float* x, float* y) {
  const hn::CappedTag<float, kChannelBlock> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  with_activation(d, s.activation, s.first, s.second, [&](auto function) HWY_ATTR {
    for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
      const V factor = scale ? hn::LoadU(d, scale + lane) : hn::Set(d, 1.0f);
      const V shift = bias ? hn::LoadU(d, bias + lane) : hn::Zero(d);
      for (size_t i = 0; i < pixels; ++i) {
        const size_t at = i * kChannelBlock + lane;
        const V value = hn::LoadU(d, x + at);
        hn::StoreU(function(bias ? hn::MulAdd(value, factor, shift) : hn::Mul(value, factor)), d,
                   y + at);
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
  size_t blocks = 0;
  for (size_t p = 0; p < s.part_count; ++p) blocks += s.parts[p].blocks;
  const auto run = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const size_t n = job / blocks, block = job % blocks;
      size_t part = 0, local = block;
      while (local >= s.parts[part].blocks) local -= s.parts[part++].blocks;
      const size_t floats = s.pixels * kChannelBlock;
      const float* scale = s.scale ? s.scale + n * s.scale_batch + block * kChannelBlock : nullptr;
      const float* bias = s.bias ? s.bias + block * kChannelBlock : nullptr;
      const ChannelScale::Part& from = s.parts[part];
      const size_t place = (n * from.blocks + local) * floats;
      if (!from.x_bf16 && !s.y_bf16) {
        run_block(s, scale, bias, s.pixels, from.x + place, s.y + job * floats);
        continue;
      }
      // What is not f32 passes through memory that stays in the first cache.
      constexpr size_t kPixels = 64;
      alignas(64) float values[kPixels * kChannelBlock];
      for (size_t i = 0; i < s.pixels; i += kPixels) {
        const size_t pixels = std::min(kPixels, s.pixels - i), count = pixels * kChannelBlock;
        const size_t at = i * kChannelBlock;
        float* to = s.y_bf16 ? values : s.y + job * floats + at;
        if (from.x_bf16) widen_values(from.x_bf16 + place + at, count, values);
        run_block(s, scale, bias, pixels, from.x_bf16 ? values : from.x + place + at, to);
        if (s.y_bf16) narrow_values(values, count, s.y_bf16 + job * floats + at);
      }
    }
  };
  const size_t jobs = s.batch * blocks;
  pool.parallel_for(jobs, 1, run, Schedule::fixed, jobs * s.pixels * kChannelBlock < 32768 ? 1 : 0);
}

}  // namespace hologram::backends::dense
#endif
