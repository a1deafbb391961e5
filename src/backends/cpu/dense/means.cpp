#include "backends/cpu/dense/means.h"

#include <algorithm>

#include "backends/cpu/dense/conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/means.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/bf16_values-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

// The sum of each lane of some pixels, in four chains.
template <typename T>
void sum_of_part(size_t pixels, const T* in, double* out) {
#if HWY_TARGET == HWY_WASM
  const hn::FixedTag<float, 1> one;
  for (size_t lane = 0; lane < kChannelBlock; ++lane) {
    double chains[4] = {};
    for (size_t i = 0; i < pixels; ++i)
      chains[i < pixels / 4 * 4 ? i % 4 : 0] +=
          hn::GetLane(load_value(one, in + i * kChannelBlock + lane));
    out[lane] = (chains[0] + chains[1]) + (chains[2] + chains[3]);
  }
#else
  const hn::CappedTag<double, kChannelBlock> d;
  for (size_t lane = 0; lane < kChannelBlock; lane += hn::Lanes(d)) {
    const T* cell = in + lane;
    auto r0 = hn::Zero(d), r1 = r0, r2 = r0, r3 = r0;
    size_t i = 0;
    for (; i + 4 <= pixels; i += 4, cell += 4 * kChannelBlock) {
      r0 = hn::Add(r0, load_wide(d, cell));
      r1 = hn::Add(r1, load_wide(d, cell + kChannelBlock));
      r2 = hn::Add(r2, load_wide(d, cell + 2 * kChannelBlock));
      r3 = hn::Add(r3, load_wide(d, cell + 3 * kChannelBlock));
    }
    for (; i < pixels; ++i, cell += kChannelBlock) r0 = hn::Add(r0, load_wide(d, cell));
    hn::StoreU(hn::Add(hn::Add(r0, r1), hn::Add(r2, r3)), d, out + lane);
  }
#endif
}

void part_sum(size_t pixels, const float* in, double* out) { sum_of_part(pixels, in, out); }
void part_sum_bf16(size_t pixels, const uint16_t* in, double* out) { sum_of_part(pixels, in, out); }

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(part_sum);
HWY_EXPORT(part_sum_bf16);

void block_means(const BlockMeans& m, ThreadPool& threads) {
  constexpr size_t kPart = 256;         // pixels that one thread adds up
  constexpr size_t kSmallMean = 65536;  // values that one thread adds up
  constexpr size_t kMostSums = 4096;
  const auto sum = HWY_DYNAMIC_DISPATCH(part_sum);
  const auto sum_bf16 = HWY_DYNAMIC_DISPATCH(part_sum_bf16);
  const size_t parts = (m.pixels + kPart - 1) / kPart;
  const unsigned wanted = m.planes * m.pixels * kChannelBlock < kSmallMean ? 1 : 0;
  const auto add_part = [&](size_t plane, size_t part, double* to) {
    const size_t first = part * kPart, from = (plane * m.pixels + first) * kChannelBlock;
    const size_t pixels = std::min(kPart, m.pixels - first);
    if (m.x_bf16)
      sum_bf16(pixels, m.x_bf16 + from, to);
    else
      sum(pixels, m.x + from, to);
  };
  const auto finish = [&](size_t plane, auto part_of) {
    double mean[kChannelBlock] = {};
    for (size_t part = 0; part < parts; ++part) {
      const double* of = part_of(part);
      for (size_t lane = 0; lane < kChannelBlock; ++lane) mean[lane] += of[lane];
    }
    for (size_t lane = 0; lane < kChannelBlock; ++lane) {
      const size_t at = plane * kChannelBlock + lane;
      mean[lane] /= static_cast<double>(m.pixels);
      if (m.y)
        m.y[at] = mean[lane];
      else
        m.y_rounded[at] = static_cast<float>(mean[lane]);
    }
  };
  if (wanted == 1 || parts == 1 || m.planes > kMostSums / kChannelBlock / parts) {
    const auto run = [&](size_t begin, size_t end) {
      for (size_t plane = begin; plane < end; ++plane) {
        alignas(64) double one[kChannelBlock];
        finish(plane, [&](size_t part) {
          add_part(plane, part, one);
          return one;
        });
      }
    };
    return threads.parallel_for(m.planes, 4, run, Schedule::dynamic, wanted);
  }
  // Large images are shared by pixels, as the steps before and after share them.
  alignas(64) double sums[kMostSums];
  const auto run = [&](size_t begin, size_t end) {
    for (size_t plane = 0; plane < m.planes; ++plane)
      for (size_t part = begin; part < end; ++part)
        add_part(plane, part, sums + (plane * parts + part) * kChannelBlock);
  };
  threads.parallel_for(parts, 1, run, Schedule::dynamic);
  for (size_t plane = 0; plane < m.planes; ++plane)
    finish(plane, [&](size_t part) { return sums + (plane * parts + part) * kChannelBlock; });
}

}  // namespace hologram::backends::dense
#endif
