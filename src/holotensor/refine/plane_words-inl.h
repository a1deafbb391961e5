// Vectors and words of 64 bits, one bit a lane. For files that Highway compiles once a target.
#if defined(HOLOGRAM_REFINE_PLANE_WORDS) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_REFINE_PLANE_WORDS
#undef HOLOGRAM_REFINE_PLANE_WORDS
#else
#define HOLOGRAM_REFINE_PLANE_WORDS
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "holotensor/refine/number_format.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::holotensor::refine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The mask of the `v`-th vector of a word, straight from memory where it begins at a byte.
template <class D>
HWY_INLINE hn::Mask<D> mask_of(D d, const uint64_t* word, size_t v) {
  const size_t lanes = hn::Lanes(d);
  if (lanes >= 8)
    return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(word) + v * lanes / 8);
  const uint64_t shifted = *word >> (v * lanes);
  return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&shifted));
}

template <class D>
HWY_INLINE uint64_t bits_of_mask(D d, hn::Mask<D> mask, size_t v) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  uint64_t word;
  memcpy(&word, bits, 8);
  return word << (v * hn::Lanes(d));
}

// Planes of 64 integers of type T, which has room for all of them.
template <typename T>
HWY_INLINE void planes_of_word(const T* values, unsigned planes, uint64_t* out, size_t stride) {
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  const size_t lanes = hn::Lanes(d);
  for (unsigned i = 0; i < planes; ++i) {
    const auto bit = hn::Set(d, static_cast<T>(T{1} << (planes - 1 - i)));
    uint64_t word = 0;
    for (size_t v = 0; v < 64 / lanes; ++v)
      word |= bits_of_mask(d, hn::TestBit(hn::LoadU(d, values + v * lanes), bit), v);
    out[i * stride] = word;
  }
}

// The first `depth` of `count` planes of a group as integers of type T, which has room for all of
// them. Four vectors at a time keep the sums in registers.
template <typename T>
HWY_INLINE void integers_of_planes(const uint64_t* planes, size_t stride, unsigned count,
                                   unsigned depth, T* out) {
  const hn::CappedTag<T, 64 / sizeof(T)> d;
  const size_t lanes = hn::Lanes(d), in_word = 64 / lanes;
  for (size_t v = 0; v < kGroup / lanes; v += 4) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (unsigned i = 0; i < depth; ++i) {
      const uint64_t* words = planes + i * stride;
      const auto bit = hn::Set(d, static_cast<T>(T{1} << (count - 1 - i)));
      const auto bits = [&](size_t at) HWY_ATTR {
        return hn::IfThenElseZero(mask_of(d, words + at / in_word, at % in_word), bit);
      };
      s0 = hn::Or(s0, bits(v));
      s1 = hn::Or(s1, bits(v + 1));
      s2 = hn::Or(s2, bits(v + 2));
      s3 = hn::Or(s3, bits(v + 3));
    }
    hn::StoreU(s0, d, out + v * lanes);
    hn::StoreU(s1, d, out + (v + 1) * lanes);
    hn::StoreU(s2, d, out + (v + 2) * lanes);
    hn::StoreU(s3, d, out + (v + 3) * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::holotensor::refine
HWY_AFTER_NAMESPACE();
#endif
