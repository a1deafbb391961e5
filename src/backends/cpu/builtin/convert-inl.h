// Between the 16-bit floats and f32, a run at a time. Included once a level by the kernels.
#if defined(HOLOGRAM_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_CONVERT_INL_H_
#undef HOLOGRAM_CONVERT_INL_H_
#else
#define HOLOGRAM_CONVERT_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "support/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The type that sums over T are made in.
template <typename T>
using Widened =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

inline void widen(const BFloat16* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i].bits) << 16;
    std::memcpy(to + i, &bits, 4);
  }
}

inline void widen(const Half* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    // The exponent and mantissa moved into place and scaled by 2^112 are exact for normal and
    // subnormal values alike; infinities and not-a-numbers get the exponent of all ones.
    const uint32_t magnitude = from[i].bits & 0x7fffu;
    const uint32_t shifted = magnitude << 13;
    float value;
    std::memcpy(&value, &shifted, 4);
    value *= 0x1p112f;
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits |= magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    bits |= (from[i].bits & 0x8000u) << 16;
    std::memcpy(to + i, &bits, 4);
  }
}

// To nearest, ties to even, as the scalar conversions of support/dtype.h.
inline void narrow(const float* from, BFloat16* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, from + i, 4);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    to[i].bits = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded);
  }
}

inline void narrow(const float* from, Half* to, size_t count) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const hn::ScalableTag<float> df;
  const hn::Rebind<hwy::float16_t, decltype(df)> dh;
  const size_t lanes = hn::Lanes(df);
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(df, from + i)), dh,
               reinterpret_cast<hwy::float16_t*>(to + i));
#endif
  for (; i < count; ++i) to[i].bits = f32_to_f16(from[i]);
}

inline float narrow_one(float value, float) { return value; }
inline double narrow_one(double value, double) { return value; }
inline Half narrow_one(float value, Half) { return Half(value); }
inline BFloat16 narrow_one(float value, BFloat16) { return BFloat16(value); }

}  // namespace hologram::backends::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
