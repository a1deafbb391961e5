// One vector of f32 or f64 from values stored as f32 or as bf16, and of f32 back, for the code of
// one CPU level.
#if defined(HOLOGRAM_DENSE_BF16_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_BF16_VALUES_INL_H_
#undef HOLOGRAM_DENSE_BF16_VALUES_INL_H_
#else
#define HOLOGRAM_DENSE_BF16_VALUES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> load_value(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_value(D d, const uint16_t* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> half;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(half, from))));
}

// Of f64; not for wasm, where Debian's Highway has next to nothing of it.
template <class D, typename T>
HWY_INLINE hn::Vec<D> load_wide(D d, const T* from) {
  return hn::PromoteTo(d, load_value(hn::Rebind<float, D>(), from));
}

template <class D>
HWY_INLINE void store_value(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}
template <class D>
HWY_INLINE void store_value(D, hn::Vec<D> value, uint16_t* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> half;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  // A NaN stays one.
  const auto kept = hn::IfThenElse(hn::RebindMask(du, hn::Ne(value, value)),
                                   hn::Or(bits, hn::Set(du, 0x00400000u)), rounded);
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(di, hn::ShiftRight<16>(kept))), half, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
