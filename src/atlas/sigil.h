// atlas: the exact algebra of 96 classes. Everything here is integer arithmetic, constexpr.
//
// Sigil classes: a byte belongs to one of 96 classes with coordinates h (4 quadrants), d (3
// modalities) and l (8 slots): class = 24h + 8d + l. Bit 0 of the byte is ignored.
#pragma once

#include <cstdint>

namespace hologram::atlas {

inline constexpr int kClassCount = 96;

struct SigilCoordinates {
  uint8_t h;  // 0..3, bits 7 and 6
  uint8_t d;  // 0..2, from bits 4 and 5; both set is the same as neither
  uint8_t l;  // 0..7, bits 3, 2 and 1
  bool operator==(const SigilCoordinates&) const = default;
};

constexpr SigilCoordinates sigil_coordinates_of_byte(uint8_t byte) {
  const bool b4 = byte & 0x10, b5 = byte & 0x20;
  return {static_cast<uint8_t>(byte >> 6),
          static_cast<uint8_t>(b4 == b5 ? 0
                               : b4     ? 1
                                        : 2),
          static_cast<uint8_t>(byte >> 1 & 7)};
}

constexpr uint8_t sigil_class(SigilCoordinates c) {
  return static_cast<uint8_t>(24 * c.h + 8 * c.d + c.l);
}
constexpr uint8_t sigil_class_of_byte(uint8_t byte) {
  return sigil_class(sigil_coordinates_of_byte(byte));
}

// `cls` must be below kClassCount, here and below.
constexpr SigilCoordinates sigil_coordinates(uint8_t cls) {
  return {static_cast<uint8_t>(cls / 24), static_cast<uint8_t>(cls % 24 / 8),
          static_cast<uint8_t>(cls % 8)};
}

// The smallest byte of a class with bit 0 clear: its name as a byte.
constexpr uint8_t canonical_byte(uint8_t cls) {
  const SigilCoordinates c = sigil_coordinates(cls);
  return static_cast<uint8_t>(c.h << 6 | (c.d == 1 ? 0x10 : c.d == 2 ? 0x20 : 0) | c.l << 1);
}

namespace detail {
// k may be any integer; the result is in [0, modulus).
constexpr uint8_t rotate(uint8_t value, int64_t k, int modulus) {
  const int64_t shift = k % modulus;
  return static_cast<uint8_t>((value + shift + modulus) % modulus);
}
}  // namespace detail

// The transforms. R, D and T commute with each other; M commutes with R and T and inverts D.
constexpr uint8_t transform_r(uint8_t cls, int64_t k) {
  SigilCoordinates c = sigil_coordinates(cls);
  c.h = detail::rotate(c.h, k, 4);
  return sigil_class(c);
}
constexpr uint8_t transform_d(uint8_t cls, int64_t k) {
  SigilCoordinates c = sigil_coordinates(cls);
  c.d = detail::rotate(c.d, k, 3);
  return sigil_class(c);
}
constexpr uint8_t transform_t(uint8_t cls, int64_t k) {
  SigilCoordinates c = sigil_coordinates(cls);
  c.l = detail::rotate(c.l, k, 8);
  return sigil_class(c);
}
constexpr uint8_t transform_m(uint8_t cls) {
  SigilCoordinates c = sigil_coordinates(cls);
  c.d = static_cast<uint8_t>((3 - c.d) % 3);
  return sigil_class(c);
}

}  // namespace hologram::atlas
