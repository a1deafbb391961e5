// SmallFloat: where the bits of an fp8 type lie.
#pragma once

#include <bit>
#include <cstdint>

#include "holotensor/refine/number_format.h"

namespace hologram::holotensor::refine {

inline bool is_fp8(DType type) { return type >= DType::f8e4m3fn && type <= DType::f8e5m2fnuz; }

struct SmallFloat {
  int mantissa;            // bits
  int bias;                // of the exponent
  uint32_t first_special;  // the seven bits of a magnitude from here on are infinite or no number
  uint32_t special_code;   // and so is this one of all eight; above 255: none

  int shift() const { return 23 - mantissa; }  // to the place in an f32
  uint32_t rebias() const { return static_cast<uint32_t>(127 - bias) << 23; }
  int first_normal() const { return 1 - bias; }     // exponents: of the smallest normal number,
  int unit() const { return 1 - bias - mantissa; }  // of the smallest of all
};

// is_fp8(type).
inline SmallFloat small_float_of(DType type) {
  switch (type) {
    case DType::f8e4m3fn:
      return {3, 7, 0x7f, 256};
    case DType::f8e4m3fnuz:
      return {3, 8, 0x80, 0x80};
    case DType::f8e5m2:
      return {2, 15, 0x7c, 256};
    default:
      return {2, 16, 0x80, 0x80};  // f8e5m2fnuz
  }
}

// The value of a code that is a number.
inline float small_float_value(const SmallFloat& format, uint32_t code) {
  const uint32_t magnitude = code & 0x7f;
  const float whole = magnitude >> format.mantissa
                          ? std::bit_cast<float>((magnitude << format.shift()) + format.rebias())
                          : static_cast<float>(magnitude) * Scale::power(format.unit());
  return code & 0x80 ? -whole : whole;
}

// The seven bits of `significand` * 2^unit, which is a number of the type and not zero.
inline uint8_t small_float_magnitude(const SmallFloat& format, uint32_t significand, int unit) {
  const int leading = unit + std::bit_width(significand) - 1;
  const int place = leading >= format.first_normal() ? leading - format.mantissa : format.unit();
  const int shift = unit - place;
  uint32_t bits = shift >= 0 ? significand << shift : significand >> -shift;
  // A normal number's leading one counts as one step of the exponent.
  if (leading >= format.first_normal())
    bits += static_cast<uint32_t>(leading - format.first_normal()) << format.mantissa;
  return static_cast<uint8_t>(bits);
}

}  // namespace hologram::holotensor::refine
