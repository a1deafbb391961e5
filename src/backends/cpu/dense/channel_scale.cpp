#include "backends/cpu/dense/channel_scale.h"

#include <algorithm>

#include "backends/cpu/dense/conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/channel_scale.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/math-inl.h"

HWY_BEFORE_NAMESPACE();
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
      run_block(s, s.scale ? s.scale + n * s.scale_batch + block * kChannelBlock : nullptr,
                s.bias ? s.bias + block * kChannelBlock : nullptr, s.pixels,
                s.parts[part].x + (n * s.parts[part].blocks + local) * floats, s.y + job * floats);
    }
  };
  const size_t jobs = s.batch * blocks;
  pool.parallel_for(jobs, 1, run, Schedule::fixed, jobs * s.pixels * kChannelBlock < 32768 ? 1 : 0);
}

}  // namespace hologram::backends::dense
#endif
