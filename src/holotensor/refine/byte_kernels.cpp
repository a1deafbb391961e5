#include "holotensor/refine/byte_kernels.h"

#include <algorithm>

#ifndef HOLOGRAM_REFINE_MAGNITUDE_CODES
#define HOLOGRAM_REFINE_MAGNITUDE_CODES
namespace hologram::holotensor::refine {
// How an integer magnitude m becomes the seven bits of an fp8: its f32 plus `rebias`, shifted, from
// `first_normal` on, and m * per_unit below.
struct MagnitudeCodes {
  uint32_t rebias;
  int shift;
  int32_t first_normal;
  float per_unit;
};
}  // namespace hologram::holotensor::refine
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "holotensor/refine/byte_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "holotensor/refine/plane_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::holotensor::refine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void IntegerCodes(const uint64_t* planes, size_t stride, unsigned count, const uint64_t* negative,
                  uint8_t flip, std::byte* out) {
  const hn::CappedTag<uint8_t, 64> d;
  const size_t lanes = hn::Lanes(d), in_word = 64 / lanes;
  const auto ones = hn::Set(d, 0xff), flips = hn::Set(d, flip);
  auto* codes = reinterpret_cast<uint8_t*>(out);
  integers_of_planes<uint8_t>(planes, stride, count, count, codes);
  // -m - 1 has the bits of ~m.
  for (size_t v = 0; v < kGroup / lanes; ++v) {
    const auto sign = hn::IfThenElseZero(mask_of(d, negative + v / in_word, v % in_word), ones);
    const auto code = hn::Xor(hn::Xor(hn::LoadU(d, codes + v * lanes), sign), flips);
    hn::StoreU(code, d, codes + v * lanes);
  }
}

void SmallFloatCodes(const MagnitudeCodes& codes, const uint64_t* planes, size_t stride,
                     unsigned count, const uint64_t* negative, std::byte* out) {
  const hn::CappedTag<float, 16> f;
  const hn::Rebind<int32_t, decltype(f)> s;
  const hn::Rebind<uint32_t, decltype(f)> u;
  const hn::Rebind<uint16_t, decltype(f)> half;
  const hn::Rebind<uint8_t, decltype(f)> narrow;
  const size_t lanes = hn::Lanes(f), in_word = 64 / lanes;
  const auto rebias = hn::Set(u, codes.rebias);
  const auto first_normal = hn::Set(s, codes.first_normal);
  const auto per_unit = hn::Set(f, codes.per_unit);
  const auto low_bits = hn::Set(s, 0x7f), sign_bit = hn::Set(s, 0x80);
  uint16_t magnitudes[kGroup];
  integers_of_planes<uint16_t>(planes, stride, count, count, magnitudes);
  for (size_t v = 0; v < kGroup / lanes; ++v) {
    const auto magnitude = hn::PromoteTo(s, hn::LoadU(half, magnitudes + v * lanes));
    const auto value = hn::ConvertTo(f, magnitude);
    const auto normal =
        hn::BitCast(s, hn::ShiftRightSame(hn::Add(hn::BitCast(u, value), rebias), codes.shift));
    const auto small = hn::ConvertTo(s, hn::Mul(value, per_unit));
    const auto code = hn::IfThenElse(hn::Lt(magnitude, first_normal), small, normal);
    const auto sign = hn::IfThenElseZero(mask_of(s, negative + v / in_word, v % in_word), sign_bit);
    hn::StoreU(hn::DemoteTo(narrow, hn::Or(hn::And(code, low_bits), sign)), narrow,
               reinterpret_cast<uint8_t*>(out) + v * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::holotensor::refine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::holotensor::refine {
HWY_EXPORT(IntegerCodes);
HWY_EXPORT(SmallFloatCodes);

void integer_codes(const uint64_t* planes, size_t stride, unsigned count, const uint64_t* negative,
                   uint8_t flip, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(IntegerCodes)(planes, stride, count, negative, flip, out);
}

void small_float_codes(const SmallFloat& format, const Window& window, const uint64_t* planes,
                       size_t stride, const uint64_t* negative, std::byte* out) {
  MagnitudeCodes codes;
  // An f32 of m has the exponent of m's leading one; the value's is window.unit() more.
  codes.rebias = (static_cast<uint32_t>(window.unit()) << 23) - format.rebias();
  codes.shift = format.shift();
  // Zero is below the first normal number wherever that is.
  codes.first_normal = 1 << std::clamp(format.first_normal() - window.unit(), 0, 30);
  // Magnitudes below the first normal number have their last bit at the type's unit or above.
  codes.per_unit = Scale::power(std::clamp(window.unit() - format.unit(), -126, 127));
  HWY_DYNAMIC_DISPATCH(SmallFloatCodes)
  (codes, planes, stride, window.planes, negative, out);
}

}  // namespace hologram::holotensor::refine
#endif
