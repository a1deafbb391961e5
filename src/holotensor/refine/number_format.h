// NumberFormat: what the refine scheme needs to know of an element type.
//
// Every element has a carrier, an f32 from which the element follows exactly: a float's carrier is
// its value, an integer's is the middle of its cell, v + 0.5 (so that both signs are alike and no
// code is spent on a negative zero). A carrier's magnitude is read as binary planes, highest first.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "support/dtype.h"

namespace hologram::holotensor::refine {

struct NumberFormat {
  DType dtype;
  uint8_t bytes;  // of one element
  bool integer;
  uint8_t significant;  // bits that planes give, counted from a carrier's leading one
  uint8_t low_bits;     // the rest of the significand: stored as they are
  float offset;         // carrier = value + offset
};

inline std::optional<NumberFormat> format_of(DType type) {
  switch (type) {
    // The low byte of an f32 is noise: it needs no planes.
    case DType::f32:
      return NumberFormat{type, 4, false, 16, 8, 0.0f};
    case DType::f16:
      return NumberFormat{type, 2, false, 11, 0, 0.0f};
    case DType::bf16:
      return NumberFormat{type, 2, false, 8, 0, 0.0f};
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
      return NumberFormat{type, 1, false, 4, 0, 0.0f};
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
      return NumberFormat{type, 1, false, 3, 0, 0.0f};
    case DType::i8:
      return NumberFormat{type, 1, true, 255, 0, 0.5f};
    case DType::u8:
      return NumberFormat{type, 1, true, 255, 0, -127.5f};
    default:
      return std::nullopt;
  }
}

// A group is 256 consecutive elements with one scale 2^e, e = floor(log2(rms)). Its first plane is
// worth 2^(e + 2); what reaches twice that, and what is not finite, is an exception.
inline constexpr unsigned kGroup = 256;
inline constexpr unsigned kGroupWords = kGroup / 64;
// Planes of a float beyond its significant bits: a leading one in the first 8 planes is followed to
// its last bit; smaller values (1-2% of Gaussian weights) end in the tail.
inline constexpr unsigned kExtraPlanes = 7;
inline constexpr unsigned kMaxPlanes = 16 + kExtraPlanes;
// Scales below the tensor's largest by more octaves than this share the last class.
inline constexpr unsigned kMaxClass = 31;
inline constexpr unsigned kEmptyClass = 63;  // every element is +0

// Elements of a block: 256 KiB of the source.
inline unsigned block_elements(const NumberFormat& format) { return (256u << 10) / format.bytes; }

// The planes of one scale class. `top` is the exponent of its first plane.
struct Window {
  int top = 0;
  unsigned planes = 0;

  int unit() const { return top - static_cast<int>(planes) + 1; }  // exponent of the last plane
};

// `largest` is the exponent of class 0's scale; planes == 0 when the class cannot exist.
inline Window window_of(const NumberFormat& format, int largest, unsigned scale_class) {
  Window window;
  window.top = largest + 2 - static_cast<int>(scale_class);
  if (!format.integer)
    window.planes = format.significant + kExtraPlanes;
  else if (window.top >= 0 && window.top <= 6)
    window.planes = static_cast<unsigned>(window.top) + 1;
  return window;
}

// 2^exponent, from -1022 to 1023: much faster than std::ldexp.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// 2^exponent in two factors, so that neither over- nor underflows.
struct Scale {
  float first, second;
  explicit Scale(int exponent)
      : first(power(exponent / 2)), second(power(exponent - exponent / 2)) {}
  static float power(int exponent) {  // -126 .. 127
    return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
  }
};

}  // namespace hologram::holotensor::refine
