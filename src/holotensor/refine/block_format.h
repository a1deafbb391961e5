// Details of a chunk that its writer and its reader share (the layout is in block.h).
#pragma once

#include <bit>
#include <cstdint>

#include "holotensor/refine/number_format.h"

namespace hologram::holotensor::refine {

enum HeadFlags : uint8_t { kHasZeros = 1, kManyClasses = 2, kHasExceptions = 4 };
enum LowForm : uint8_t { kLowZero = 0, kLowRaw = 1 };  // beyond: kLowRaw + Codec

// Bits of an element's magnitude, without the sign and the low bits.
inline unsigned magnitude_bits(const NumberFormat& format) {
  return format.bytes * 8u - 1 - format.low_bits;
}

// Bits that planes leave missing below a magnitude whose leading one is past plane kExtraPlanes.
inline unsigned missing_bits(const Window& window, uint32_t magnitude) {
  const unsigned leading_plane = window.planes - static_cast<unsigned>(std::bit_width(magnitude));
  return leading_plane - kExtraPlanes;
}

// The significant bits of a carrier that is not zero, its leading one first.
inline uint32_t significand(float carrier, const NumberFormat& format) {
  const uint32_t bits =
      std::bit_cast<uint32_t>(carrier) & 0x7fffffff & ~((1u << format.low_bits) - 1);
  uint32_t value = bits & 0x7fffff;
  if (bits >> 23)
    value |= 0x800000;
  else
    value <<= 24 - std::bit_width(value);  // subnormal
  return value >> (24 - format.significant);
}

}  // namespace hologram::holotensor::refine
