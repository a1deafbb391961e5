// Reductions of one run of values with a fixed tree, for the code of one CPU level.
#if defined(HOLOGRAM_DENSE_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_REDUCE_INL_H_
#undef HOLOGRAM_DENSE_REDUCE_INL_H_
#else
#define HOLOGRAM_DENSE_REDUCE_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The operations: neutral element, what is done to a value, how two are combined.
struct SumOf {
  static constexpr float kNeutral = 0.0f;
  template <class V>
  static HWY_INLINE V take(V x) {
    return x;
  }
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Add(a, b);
  }
  static float combine_scalar(float a, float b) { return a + b; }
  template <class D>
  static HWY_INLINE float combine_all(D d, hn::Vec<D> v) {
    return hn::GetLane(hn::SumOfLanes(d, v));
  }
};
struct SquaresOf : SumOf {
  template <class V>
  static HWY_INLINE V take(V x) {
    return hn::Mul(x, x);
  }
};
struct MagnitudesOf : SumOf {
  template <class V>
  static HWY_INLINE V take(V x) {
    return hn::Abs(x);
  }
};
struct ProductOf : SumOf {
  static constexpr float kNeutral = 1.0f;
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::Mul(a, b);
  }
  static float combine_scalar(float a, float b) { return a * b; }
  template <class D>
  static HWY_INLINE float combine_all(D d, hn::Vec<D> v) {
    constexpr size_t kLanes = hn::MaxLanes(d);
    HWY_ALIGN float lanes[kLanes];
    hn::Store(v, d, lanes);
    for (size_t half = kLanes / 2; half != 0; half /= 2)
      for (size_t i = 0; i < half; ++i) lanes[i] *= lanes[i + half];
    return lanes[0];
  }
};
// x86 returns the second operand when either is NaN, so a NaN in `b` wins and one in `a` has to be
// put back.
struct MaxOf : SumOf {
  static constexpr float kNeutral = -HUGE_VALF;
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::Max(a, b));
  }
  static float combine_scalar(float a, float b) { return std::isnan(a) || a > b ? a : b; }
  template <class D>
  static HWY_INLINE float combine_all(D d, hn::Vec<D> v) {
    if (!hn::AllFalse(d, hn::IsNaN(v))) return NAN;
    return hn::GetLane(hn::MaxOfLanes(d, v));
  }
};
struct MinOf : SumOf {
  static constexpr float kNeutral = HUGE_VALF;
  template <class V>
  static HWY_INLINE V combine(V a, V b) {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::Min(a, b));
  }
  static float combine_scalar(float a, float b) { return std::isnan(a) || a < b ? a : b; }
  template <class D>
  static HWY_INLINE float combine_all(D d, hn::Vec<D> v) {
    if (!hn::AllFalse(d, hn::IsNaN(v))) return NAN;
    return hn::GetLane(hn::MinOfLanes(d, v));
  }
};

// All lanes of a vector, by the tree of the level.
template <class Op, class D>
HWY_INLINE float combine_lanes(D d, hn::Vec<D> v) {
  return Op::combine_all(d, v);
}

// The sum of all lanes as ONNX Runtime has it: by halves down to eight, then by neighbours.
template <class D>
HWY_INLINE float fold_lanes(D d, hn::Vec<D> v) {
  constexpr size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN float t[kLanes < 8 ? 8 : kLanes] = {};
  hn::Store(v, d, t);
  for (size_t half = kLanes / 2; half >= 8; half /= 2)
    for (size_t i = 0; i < half; ++i) t[i] += t[i + half];
  return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
}

// Reduces f(i), a vector at i < count; lanes beyond count are replaced by the neutral element.
// Four chains, combined pairwise.
template <class Op, class D, class F>
HWY_INLINE float reduce_with(D d, size_t count, const F& f) {
  using V = hn::Vec<D>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const V neutral = hn::Set(d, Op::kNeutral);
  V r0 = neutral, r1 = neutral, r2 = neutral, r3 = neutral;
  size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    r0 = Op::combine(r0, f(i));
    r1 = Op::combine(r1, f(i + kLanes));
    r2 = Op::combine(r2, f(i + 2 * kLanes));
    r3 = Op::combine(r3, f(i + 3 * kLanes));
  }
  for (; i + kLanes <= count; i += kLanes) r0 = Op::combine(r0, f(i));
  r0 = Op::combine(Op::combine(r0, r1), Op::combine(r2, r3));
  return combine_lanes<Op>(d, r0);
}

// Of x[0 .. count).
template <class Op>
HWY_INLINE float reduce_run(const float* x, size_t count) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const size_t whole = count / kLanes * kLanes;
  float value =
      reduce_with<Op>(d, whole, [&](size_t i) HWY_ATTR { return Op::take(hn::LoadU(d, x + i)); });
  if (whole < count) {
    HWY_ALIGN float rest[kLanes] = {};
    for (size_t i = whole; i < count; ++i) rest[i - whole] = x[i];
    hn::Store(Op::take(hn::Load(d, rest)), d, rest);
    for (size_t i = whole; i < count; ++i) value = Op::combine_scalar(value, rest[i - whole]);
  }
  return value;
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
