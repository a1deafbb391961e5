// DType: the element types of tensors and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hologram {

// The first group computes; the second only stores (values are converted before arithmetic).
// The numbers are written into files: append, never renumber.
enum class DType : uint8_t {
  boolean = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  u8 = 5,
  u16 = 6,
  u32 = 7,
  u64 = 8,
  f16 = 9,
  bf16 = 10,
  f32 = 11,
  f64 = 12,

  i4 = 32,  // two a byte, low nibble first, as ONNX packs them
  u4 = 33,
  i2 = 34,  // four a byte, lowest bits first
  u2 = 35,
  f8e4m3fn = 36,
  f8e4m3fnuz = 37,
  f8e5m2 = 38,
  f8e5m2fnuz = 39,
  f8e8m0 = 40,  // a scale: a power of two
  f4e2m1 = 41,  // two a byte
  complex64 = 48,
  complex128 = 49,
  string = 56,  // a host value: no fixed size
};

// Bits of one stored element; 0 for string.
constexpr unsigned bits_of(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::i8:
    case DType::u8:
      return 8;
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return 16;
    case DType::i32:
    case DType::u32:
    case DType::f32:
      return 32;
    case DType::i64:
    case DType::u64:
    case DType::f64:
      return 64;
    case DType::i4:
    case DType::u4:
    case DType::f4e2m1:
      return 4;
    case DType::i2:
    case DType::u2:
      return 2;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
      return 8;
    case DType::complex64:
      return 64;
    case DType::complex128:
      return 128;
    case DType::string:
      return 0;
  }
  return 0;
}

// Bytes of one element; 0 where an element has no whole number of bytes.
constexpr size_t size_of(DType type) { return bits_of(type) % 8 == 0 ? bits_of(type) / 8 : 0; }

// Bytes of `count` packed elements (rounded up to a whole byte).
constexpr uint64_t bytes_for(DType type, uint64_t count) {
  const unsigned bits = bits_of(type);
  return bits % 8 == 0 ? count * (bits / 8) : (count * bits + 7) / 8;
}

constexpr bool is_signed_integer(DType type) { return type >= DType::i8 && type <= DType::i64; }
constexpr bool is_unsigned_integer(DType type) { return type >= DType::u8 && type <= DType::u64; }
constexpr bool is_integer(DType type) {
  return is_signed_integer(type) || is_unsigned_integer(type);
}
constexpr bool is_float(DType type) { return type >= DType::f16 && type <= DType::f64; }
constexpr bool is_compute(DType type) { return type <= DType::f64; }
constexpr bool is_storage_only(DType type) { return !is_compute(type); }

// "f32", "bool", "f8e4m3fn", ...
std::string_view name_of(DType type);
std::optional<DType> dtype_from_name(std::string_view name);
// A number read from a file, if it names a type.
std::optional<DType> dtype_from_code(uint8_t code);

// f16 and bf16 as values: 16 bits that convert to and from float (round to nearest even).
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
  bool operator==(const Half&) const = default;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
  bool operator==(const BFloat16&) const = default;
};

uint16_t f32_to_f16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float bf16_to_f32(uint16_t bits);
// Rounded once: going through float would round twice.
uint16_t f64_to_f16(double value);
uint16_t f64_to_bf16(double value);

// One element of any 8-bit or smaller float format to float, and back with saturation where the
// format says so. `type` must be one of the f8*/f4* types.
float small_float_to_f32(DType type, uint8_t bits);
uint8_t f32_to_small_float(DType type, float value, bool saturate = true);

// The DType of a C++ type: dtype_of<float>() == DType::f32.
template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return DType::boolean;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::i8;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::i16;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::u8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::u16;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::u32;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::u64;
}
template <>
constexpr DType dtype_of<Half>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}

}  // namespace hologram
