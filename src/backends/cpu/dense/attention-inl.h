// The softmax of attention over one row of a block of scores, for the code of one CPU level.
#if defined(HOLOGRAM_DENSE_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_ATTENTION_INL_H_
#undef HOLOGRAM_DENSE_ATTENTION_INL_H_
#else
#define HOLOGRAM_DENSE_ATTENTION_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/dense/math-inl.h"
#include "backends/cpu/dense/reduce-inl.h"
#include "backends/cpu/dense/tile.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

// One row of a block of scores: factor, cap and mask, then exp(score - maximum). Groups of kGroup
// chunks of 16 are `stride` floats apart. Lanes beyond `count` become 0. Returns by how much what
// was summed before has to be scaled. A factor is for groups of two only.
template <size_t kGroup>
HWY_INLINE float weigh_row(float* scores, size_t stride, size_t count, float factor, float softcap,
                           const float* mask, float& maximum, float& sum) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  constexpr size_t kWide = kGroup * kChunk;
  const size_t padded = (count + kChunk - 1) / kChunk * kChunk;
  V peak = hn::Set(d, -HUGE_VALF);
  HWY_ALIGN float rest[kLanes];
  for (size_t j = 0; j < padded; j += kLanes) {
    float* at = scores + j / kWide * stride + j % kWide;
    V s = hn::Load(d, at);
    if constexpr (kGroup == 2) s = hn::Mul(s, hn::Set(d, factor));
    if (softcap != 0.0f) s = hn::Mul(hn::Set(d, softcap), tanh(d, hn::Div(s, hn::Set(d, softcap))));
    if (j + kLanes <= count) {
      if (mask) s = hn::Add(s, hn::LoadU(d, mask + j));
    } else {
      const size_t left = count > j ? count - j : 0;
      std::fill_n(rest, kLanes, -HUGE_VALF);
      std::fill_n(rest, left, 0.0f);
      if (mask) std::copy_n(mask + j, left, rest);
      s = hn::Add(s, hn::Load(d, rest));  // scores are finite beyond the last key
    }
    peak = hn::Max(peak, s);
    hn::Store(s, d, at);
  }
  // A NaN among the scores may be lost here, but not in the weights, which make the sum NaN.
  const float before = maximum;
  maximum = std::max(before, hn::GetLane(hn::MaxOfLanes(d, peak)));
  // While everything is masked there is nothing to subtract from.
  const float base = maximum == -HUGE_VALF ? 0.0f : maximum;
  const V bases = hn::Set(d, base), floor = hn::Set(d, -87.0f);
  V sums = hn::Zero(d);
  for (size_t j = 0; j < padded; j += kLanes) {
    float* at = scores + j / kWide * stride + j % kWide;
    const V x = hn::Sub(hn::Load(d, at), bases);
    // Below -87 the weight is 0; a NaN is not below and stays.
    const V e = hn::IfThenZeroElse(hn::Lt(x, floor), exp_in_range(d, hn::Max(floor, x)));
    sums = hn::Add(sums, e);
    hn::Store(e, d, at);
  }
  const float scale = before == base ? 1.0f : before == -HUGE_VALF ? 0.0f : std::exp(before - base);
  sum = sum * scale + combine_lanes<SumOf>(d, sums);
  return scale;
}

// The same over all keys at once, in the order of ONNX Runtime: the sum of a vector of chains, by
// which the weights are divided. Chunks are `stride` floats apart.
HWY_INLINE void weigh_row_ordered(float* scores, size_t stride, size_t count, float factor,
                                  const float* mask) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t padded = (count + kChunk - 1) / kChunk * kChunk;
  const auto place = [&](size_t j) { return scores + j / kChunk * stride + j % kChunk; };
  V peak = hn::Set(d, -HUGE_VALF);
  HWY_ALIGN float rest[kLanes];
  for (size_t j = 0; j < padded; j += kLanes) {
    V s = hn::Mul(hn::Load(d, place(j)), hn::Set(d, factor));
    if (j + kLanes <= count) {
      if (mask) s = hn::Add(s, hn::LoadU(d, mask + j));
    } else {
      const size_t left = count > j ? count - j : 0;
      std::fill_n(rest, kLanes, -HUGE_VALF);
      std::fill_n(rest, left, 0.0f);
      if (mask) std::copy_n(mask + j, left, rest);
      s = hn::Add(s, hn::Load(d, rest));  // scores are finite beyond the last key
    }
    peak = hn::Max(peak, s);
    hn::Store(s, d, place(j));
  }
  const V maximum = hn::Set(d, hn::GetLane(hn::MaxOfLanes(d, peak))), floor = hn::Set(d, -87.0f);
  V sums = hn::Zero(d);
  for (size_t j = 0; j < padded; j += kLanes) {
    const V x = hn::Sub(hn::Load(d, place(j)), maximum);
    const V e = hn::IfThenZeroElse(hn::Lt(x, floor), exp_in_range(d, hn::Max(floor, x)));
    sums = hn::Add(sums, e);
    hn::Store(e, d, place(j));
  }
  const V inverse = hn::Set(d, 1.0f / fold_lanes(d, sums));
  for (size_t j = 0; j < padded; j += kLanes)
    hn::Store(hn::Mul(hn::Load(d, place(j)), inverse), d, place(j));
}

HWY_INLINE void scale_row(float* row, size_t count, float scale) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto s = hn::Set(d, scale);
  for (size_t i = 0; i < count; i += kLanes)
    hn::Store(hn::Mul(hn::Load(d, row + i), s), d, row + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
