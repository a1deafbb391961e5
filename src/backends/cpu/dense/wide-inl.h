// Vectors of f64 for sums that are rounded once, for the code of one CPU level. Where a level has
// none (Highway's for WebAssembly), a vector is one value.
#if defined(HOLOGRAM_DENSE_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_WIDE_INL_H_
#undef HOLOGRAM_DENSE_WIDE_INL_H_
#else
#define HOLOGRAM_DENSE_WIDE_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace wide {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_FLOAT64
using D = hn::ScalableTag<double>;
using N = hn::Rebind<float, D>;  // as many values of f32
using V = hn::Vec<D>;
inline constexpr size_t kLanes = hn::MaxLanes(D());

HWY_INLINE V set(double value) { return hn::Set(D(), value); }
HWY_INLINE V load(const double* from) { return hn::LoadU(D(), from); }
HWY_INLINE V load(const float* from) { return hn::PromoteTo(D(), hn::LoadU(N(), from)); }
HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V mul_add(V a, V b, V c) { return hn::MulAdd(a, b, c); }
HWY_INLINE void store(V value, double* to) { hn::StoreU(value, D(), to); }
// Rounds, and clips where `clips`.
HWY_INLINE void store_rounded(V value, bool clips, float low, float high, float* to) {
  auto rounded = hn::DemoteTo(N(), value);
  if (clips) rounded = hn::Max(hn::Set(N(), low), hn::Min(hn::Set(N(), high), rounded));
  hn::StoreU(rounded, N(), to);
}
#else
using V = double;
inline constexpr size_t kLanes = 1;

HWY_INLINE V set(double value) { return value; }
HWY_INLINE V load(const double* from) { return *from; }
HWY_INLINE V load(const float* from) { return static_cast<double>(*from); }
HWY_INLINE V add(V a, V b) { return a + b; }
HWY_INLINE V mul_add(V a, V b, V c) { return a * b + c; }
HWY_INLINE void store(V value, double* to) { *to = value; }
HWY_INLINE void store_rounded(V value, bool clips, float low, float high, float* to) {
  const auto rounded = static_cast<float>(value);
  *to = !clips ? rounded : rounded > high ? high : rounded > low ? rounded : low;
}
#endif

// Any number of values.
inline void widen(const float* from, size_t count, double* to) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(load(from + i), to + i);
  for (; i < count; ++i) to[i] = static_cast<double>(from[i]);
}

}  // namespace wide
}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
