#include "support/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

namespace hologram {
namespace {

struct NamedType {
  DType type;
  std::string_view name;
};

constexpr NamedType kNames[] = {
    {DType::boolean, "bool"},
    {DType::i8, "i8"},
    {DType::i16, "i16"},
    {DType::i32, "i32"},
    {DType::i64, "i64"},
    {DType::u8, "u8"},
    {DType::u16, "u16"},
    {DType::u32, "u32"},
    {DType::u64, "u64"},
    {DType::f16, "f16"},
    {DType::bf16, "bf16"},
    {DType::f32, "f32"},
    {DType::f64, "f64"},
    {DType::i4, "i4"},
    {DType::u4, "u4"},
    {DType::i2, "i2"},
    {DType::u2, "u2"},
    {DType::f8e4m3fn, "f8e4m3fn"},
    {DType::f8e4m3fnuz, "f8e4m3fnuz"},
    {DType::f8e5m2, "f8e5m2"},
    {DType::f8e5m2fnuz, "f8e5m2fnuz"},
    {DType::f8e8m0, "f8e8m0"},
    {DType::f4e2m1, "f4e2m1"},
    {DType::complex64, "complex64"},
    {DType::complex128, "complex128"},
    {DType::string, "string"},
};

// A binary float format narrower than f32, described by its fields.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;     // all-ones exponent with zero mantissa is infinity (IEEE)
  bool nan_is_neg_zero;  // "fnuz": one NaN, the code of negative zero; no negative zero
};

// Rounds a double to `format`, once, to nearest even. Returns sign, exponent and mantissa as one
// code without handling of infinity and NaN; `overflow` tells that the value is past the largest.
uint32_t round_to_format(double magnitude, int exponent_bits, int mantissa_bits, int bias) {
  if (magnitude == 0) return 0;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  exponent -= 1;
  const int smallest = 1 - bias;
  const int quantum = (exponent < smallest ? smallest : exponent) - mantissa_bits;
  // std::nearbyint rounds half to even in the default mode; the product is exact.
  const double steps = std::nearbyint(std::ldexp(magnitude, -quantum));
  const auto units = static_cast<uint64_t>(steps);
  if (exponent < smallest)
    return static_cast<uint32_t>(units);  // may carry into the smallest normal
  const uint64_t code = (static_cast<uint64_t>(exponent + bias) << mantissa_bits) +
                        (units - (uint64_t{1} << mantissa_bits));
  const uint64_t limit = uint64_t{1} << (exponent_bits + mantissa_bits);
  return static_cast<uint32_t>(code < limit ? code : limit);
}

Format format_of(DType type) {
  switch (type) {
    case DType::f8e4m3fn:
      return {4, 3, 7, false, false};
    case DType::f8e4m3fnuz:
      return {4, 3, 8, false, true};
    case DType::f8e5m2:
      return {5, 2, 15, true, false};
    case DType::f8e5m2fnuz:
      return {5, 2, 16, false, true};
    case DType::f4e2m1:
      return {2, 1, 1, false, false};
    default:
      return {8, 0, 127, false, false};
  }
}

uint16_t round_f64(double value, int exponent_bits, int mantissa_bits, int bias) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  if (std::isnan(value)) {
    return static_cast<uint16_t>(sign | infinity | (1u << (mantissa_bits - 1)));
  }
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  const uint32_t code = round_to_format(std::fabs(value), exponent_bits, mantissa_bits, bias);
  return static_cast<uint16_t>(sign | (code < infinity ? code : infinity));
}

}  // namespace

std::string_view name_of(DType type) {
  for (const NamedType& entry : kNames)
    if (entry.type == type) return entry.name;
  return "?";
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const NamedType& entry : kNames)
    if (entry.name == name) return entry.type;
  return std::nullopt;
}

std::optional<DType> dtype_from_code(uint8_t code) {
  // Opening an archive asks this for every value: a bit a code.
  constexpr uint64_t kCodes = [] {
    uint64_t codes = 0;
    for (const NamedType& entry : kNames) codes |= uint64_t{1} << static_cast<unsigned>(entry.type);
    return codes;
  }();
  if (code >= 64 || !(kCodes >> code & 1)) return std::nullopt;
  return static_cast<DType>(code);
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds past 65504
  if (magnitude < 0x38800000) {  // subnormal in f16: let the adder align and round the mantissa
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t odd = (magnitude >> 13) & 1;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {
    // Infinity, or a NaN made quiet.
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | ((magnitude & 0x3ff) << 13) | quiet);
  }
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f64_to_f16(double value) { return round_f64(value, 5, 10, 15); }
uint16_t f64_to_bf16(double value) { return round_f64(value, 8, 7, 127); }

Half::Half(float value) : bits(f32_to_f16(value)) {}
Half::operator float() const { return f16_to_f32(bits); }
BFloat16::BFloat16(float value) : bits(f32_to_bf16(value)) {}
BFloat16::operator float() const { return bf16_to_f32(bits); }

float small_float_to_f32(DType type, uint8_t bits) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (type == DType::f8e8m0) return bits == 0xff ? kNan : std::ldexp(1.0f, bits - 127);
  const Format f = format_of(type);
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const uint32_t sign_bit = 1u << (width - 1);
  const uint32_t magnitude = bits & (sign_bit - 1);
  const bool negative = bits & sign_bit;
  if (f.nan_is_neg_zero && negative && magnitude == 0) return kNan;
  const uint32_t top = sign_bit - 1;
  if (type == DType::f8e4m3fn && magnitude == top) return kNan;
  if (f.has_infinity) {
    const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    if (magnitude > infinity) return kNan;
    if (magnitude == infinity) {
      return negative ? -std::numeric_limits<float>::infinity()
                      : std::numeric_limits<float>::infinity();
    }
  }
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const int mantissa = static_cast<int>(magnitude & ((1u << f.mantissa_bits) - 1));
  const float value = exponent == 0
                          ? std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits)
                          : std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)),
                                       exponent - f.bias - f.mantissa_bits);
  return negative ? -value : value;
}

uint8_t f32_to_small_float(DType type, float value, bool saturate) {
  if (type == DType::f8e8m0) {
    // The nearest power of two (ties upwards); it has no sign, no zero and no infinity.
    if (std::isnan(value)) return 0xff;
    const float magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return saturate ? 0xfe : 0xff;
    if (magnitude < 0x1p-127f) return 0;
    int exponent;
    const float fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
    const int code = exponent - 1 + 127 + (fraction >= 0.75f ? 1 : 0);
    if (code > 254) return saturate ? 0xfe : 0xff;
    return static_cast<uint8_t>(code < 0 ? 0 : code);
  }
  const Format f = format_of(type);
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const uint8_t sign_bit = static_cast<uint8_t>(1u << (width - 1));
  const uint8_t sign = std::signbit(value) ? sign_bit : 0;
  const uint32_t top = sign_bit - 1u;
  const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  const uint32_t largest = f.has_infinity ? infinity - 1 : type == DType::f8e4m3fn ? top - 1 : top;
  const bool is_f4 = type == DType::f4e2m1;
  const uint8_t nan = static_cast<uint8_t>(f.nan_is_neg_zero ? sign_bit
                                           : is_f4           ? largest  // has no NaN
                                                             : sign | top);
  if (std::isnan(value)) return nan;
  const uint32_t code = std::isinf(value)
                            ? top + 1
                            : round_to_format(std::fabs(static_cast<double>(value)),
                                              f.exponent_bits, f.mantissa_bits, f.bias);
  if (code > largest) {
    if (saturate || is_f4) return static_cast<uint8_t>(sign | largest);
    return f.has_infinity ? static_cast<uint8_t>(sign | infinity) : nan;
  }
  if (code == 0 && f.nan_is_neg_zero) return 0;  // there is no negative zero
  return static_cast<uint8_t>(sign | code);
}

}  // namespace hologram
