// Sums, dot products and extrema of a run of f32 or f64, in a tree that is the same on every level.
//
// A run is dealt over 256 bytes of lanes: element i goes to lane i mod kLanes. However many vectors
// of a level make up the lanes, every lane sees the same elements in the same order, and the lanes
// are folded in halves at the end. So the bits do not depend on the width of vectors.
#if defined(HOLOGRAM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_LANES_INL_H_
#undef HOLOGRAM_LANES_INL_H_
#else
#define HOLOGRAM_LANES_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename A>
inline constexpr size_t kLanes = 256 / sizeof(A);

struct AddFold {
  template <typename A>
  A operator()(A a, A b) const {
    return a + b;
  }
};
struct MinFold {
  template <typename A>
  A operator()(A a, A b) const {
    return b < a ? b : a;
  }
};
struct MaxFold {
  template <typename A>
  A operator()(A a, A b) const {
    return a < b ? b : a;
  }
};

template <typename A, typename Fold>
HWY_INLINE A fold_lanes(A* lanes, size_t count, Fold fold) {
  for (size_t width = count / 2; width > 0; width /= 2)
    for (size_t i = 0; i < width; ++i) lanes[i] = fold(lanes[i], lanes[i + width]);
  return lanes[0];
}

// The lanes of one vector folded in halves, in registers.
template <typename D>
HWY_INLINE hn::TFromD<D> fold_sum([[maybe_unused]] D d, hn::Vec<D> v) {
#if HWY_TARGET == HWY_SCALAR  // which has no more than one lane to fold
  return hn::GetLane(v);
#else
  using A = hn::TFromD<D>;
  if constexpr (hn::MaxLanes(d) * sizeof(A) > 16) {
    const hn::Half<D> half;
    return fold_sum(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else if constexpr (sizeof(A) == 4) {
    v = hn::Add(v, hn::Shuffle1032(v));
    return hn::GetLane(hn::Add(v, hn::Shuffle2301(v)));
  } else {
    return hn::GetLane(hn::Add(v, hn::Shuffle01(v)));
  }
#endif
}

// The vectors of sums as one sum, after element k of the rest is added to lane k. Folding whole
// vectors first is the same tree. Every loop over vectors is unrolled, so that they stay in
// registers.
template <typename D, size_t kVectors, typename Rest>
HWY_INLINE hn::TFromD<D> finish_sum(D d, hn::Vec<D> (&sums)[kVectors], size_t rest, Rest element) {
  using A = hn::TFromD<D>;
  constexpr size_t kWidth = hn::MaxLanes(d);
  if (rest != 0) {
    HWY_ALIGN A lanes[kVectors * kWidth];
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], d, lanes + v * kWidth);
    for (size_t k = 0; k < rest; ++k) lanes[k] += element(k);
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Load(d, lanes + v * kWidth);
  }
#pragma GCC unroll 4
  for (size_t width = kVectors / 2; width > 0; width /= 2)
#pragma GCC unroll 16
    for (size_t v = 0; v < width; ++v) sums[v] = hn::Add(sums[v], sums[v + width]);
  return fold_sum(d, sums[0]);
}

template <typename A>
HWY_INLINE A sum_run(const A* x, size_t count) {
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kWidth = hn::MaxLanes(d), kVectors = kLanes<A> / kWidth;
  V sums[kVectors];
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes<A> <= count; i += kLanes<A>) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v)
      sums[v] = hn::Add(sums[v], hn::LoadU(d, x + i + v * kWidth));
  }
  return finish_sum(d, sums, count - i, [&](size_t k) { return x[i + k]; });
}

// Products and sums rounded apart, as on levels without fused instructions.
template <typename A>
HWY_INLINE A dot_run(const A* x, const A* y, size_t count) {
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kWidth = hn::MaxLanes(d), kVectors = kLanes<A> / kWidth;
  V sums[kVectors];
#pragma GCC unroll 16
  for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  size_t i = 0;
  for (; i + kLanes<A> <= count; i += kLanes<A>) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v)
      sums[v] = hn::Add(
          sums[v], hn::Mul(hn::LoadU(d, x + i + v * kWidth), hn::LoadU(d, y + i + v * kWidth)));
  }
  return finish_sum(d, sums, count - i, [&](size_t k) { return x[i + k] * y[i + k]; });
}

// The least (or greatest) of at least one element; not-a-number if any element is.
template <bool kLeast, typename A>
HWY_INLINE A extremum_run(const A* x, size_t count) {
  const hn::ScalableTag<A> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kWidth = hn::MaxLanes(d), kVectors = kLanes<A> / kWidth;
  constexpr A kNeutral =
      kLeast ? std::numeric_limits<A>::infinity() : -std::numeric_limits<A>::infinity();
  V best[kVectors];
  for (V& b : best) b = hn::Set(d, kNeutral);
  V unordered = hn::Zero(d);  // bits set where an element was not a number
  size_t i = 0;
  for (; i + kLanes<A> <= count; i += kLanes<A>) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) {
      const V value = hn::LoadU(d, x + i + v * kWidth);
      unordered = hn::Or(unordered, hn::VecFromMask(d, hn::IsNaN(value)));
      best[v] = kLeast ? hn::Min(best[v], value) : hn::Max(best[v], value);
    }
  }
  HWY_ALIGN A lanes[kLanes<A>];
  for (size_t v = 0; v < kVectors; ++v) hn::Store(best[v], d, lanes + v * kWidth);
  bool nan = !hn::AllTrue(d, hn::Eq(unordered, hn::Zero(d)));
  for (size_t lane = 0; i < count; ++i, ++lane) {
    nan |= x[i] != x[i];
    lanes[lane] = kLeast ? MinFold()(lanes[lane], x[i]) : MaxFold()(lanes[lane], x[i]);
  }
  if (nan) return std::numeric_limits<A>::quiet_NaN();
  return kLeast ? fold_lanes(lanes, kLanes<A>, MinFold()) : fold_lanes(lanes, kLanes<A>, MaxFold());
}

}  // namespace hologram::backends::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
