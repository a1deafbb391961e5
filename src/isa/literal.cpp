#include "isa/literal.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace hologram::isa {
namespace {

// The quiet NaN that `nan` means; others are written as bits.
constexpr uint64_t plain_nan(DType type) {
  switch (type) {
    case DType::f16:
      return 0x7e00;
    case DType::bf16:
      return 0x7fc0;
    case DType::f32:
      return 0x7fc00000;
    default:
      return 0x7ff8000000000000;
  }
}

template <typename Float>
std::string print_float(DType type, Float value, uint64_t bits) {
  if (std::isnan(value)) return bits == plain_nan(type) ? "nan" : fmt::format("{:#x}", bits);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// The whole of `text`, as a number.
template <typename Number>
bool read_number(std::string_view text, Number& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

// from_chars takes "inf" and "nan" as well; only digits are wanted here. Numbers too small or too
// large round to zero and infinity like any other.
template <typename Float>
bool read_decimal(std::string_view text, Float& value) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos || text.empty() ||
      text.find_first_of("0123456789") == std::string_view::npos)
    return false;
#if defined(__cpp_lib_to_chars)
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  if (error == std::errc{}) return true;
#endif
  // Out of range, or a library without from_chars for floats: the C library decides.
  const std::string copy(text);
  char* stopped = nullptr;
  if constexpr (std::is_same_v<Float, float>)
    value = std::strtof(copy.c_str(), &stopped);
  else
    value = std::strtod(copy.c_str(), &stopped);
  return stopped == copy.c_str() + copy.size();
}

Result<uint64_t> parse_integer(DType type, std::string_view text) {
  const auto refuse = [&] {
    const unsigned bits = bits_of(type);
    if (is_signed_integer(type))
      return fail(ErrorCode::invalid_argument, "expected an integer from {} to {}, found '{}'",
                  std::numeric_limits<int64_t>::min() >> (64 - bits),
                  std::numeric_limits<int64_t>::max() >> (64 - bits), text);
    return fail(ErrorCode::invalid_argument, "expected an integer from 0 to {}, found '{}'",
                ~uint64_t{0} >> (64 - bits), text);
  };
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
  if (hexadecimal) digits.remove_prefix(2);
  uint64_t magnitude = 0;
  if (!read_number(digits, magnitude, hexadecimal ? 16 : 10)) return refuse();
  const unsigned bits = bits_of(type);
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  const uint64_t largest = is_signed_integer(type) ? mask >> 1 : mask;
  const uint64_t limit = !negative ? largest : is_signed_integer(type) ? largest + 1 : 0;
  if (magnitude > limit) return refuse();
  return (negative ? uint64_t{0} - magnitude : magnitude) & mask;
}

Result<uint64_t> parse_float(DType type, std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  const unsigned size = bits_of(type);
  if (digits.starts_with("0x") && digits.size() == text.size()) {
    uint64_t bits = 0;
    if (!read_number(digits.substr(2), bits, 16) || (size < 64 && bits >> size != 0))
      return fail(ErrorCode::invalid_argument, "expected the {} bits of a {}, found '{}'", size,
                  name_of(type), text);
    return bits;
  }
  const uint64_t sign = uint64_t{negative} << (size - 1);
  if (digits == "nan") return plain_nan(type) | sign;
  if (digits == "inf") return float_bits(type, std::numeric_limits<double>::infinity()) | sign;
  if (type == DType::f32) {
    if (float value = 0;
        !digits.starts_with('+') && !digits.starts_with('-') && read_decimal(digits, value))
      return std::bit_cast<uint32_t>(value) | sign;
  } else {
    if (double value = 0;
        !digits.starts_with('+') && !digits.starts_with('-') && read_decimal(digits, value))
      return float_bits(type, value) | sign;
  }
  return fail(ErrorCode::invalid_argument,
              "expected a number, inf, nan or the bits of a {} as 0x..., found '{}'", name_of(type),
              text);
}

}  // namespace

uint64_t float_bits(DType type, double value) {
  switch (type) {
    case DType::f16:
      return f64_to_f16(value);
    case DType::bf16:
      return f64_to_bf16(value);
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    default:
      return std::bit_cast<uint64_t>(value);
  }
}

std::string print_literal(DType type, uint64_t bits) {
  switch (type) {
    case DType::boolean:
      return bits == 0 ? "false" : bits == 1 ? "true" : fmt::format("{:#x}", bits);
    case DType::f16:
      return print_float(type, f16_to_f32(static_cast<uint16_t>(bits)), bits);
    case DType::bf16:
      return print_float(type, bf16_to_f32(static_cast<uint16_t>(bits)), bits);
    case DType::f32:
      return print_float(type, std::bit_cast<float>(static_cast<uint32_t>(bits)), bits);
    case DType::f64:
      return print_float(type, std::bit_cast<double>(bits), bits);
    default:
      break;
  }
  if (!is_signed_integer(type)) return fmt::to_string(bits);
  const unsigned unused = 64 - bits_of(type);
  return fmt::to_string(static_cast<int64_t>(bits << unused) >> unused);
}

Result<uint64_t> parse_literal(DType type, std::string_view text) {
  if (type == DType::boolean) {
    if (text == "true") return 1;
    if (text == "false") return 0;
    return fail(ErrorCode::invalid_argument, "expected true or false, found '{}'", text);
  }
  return is_float(type) ? parse_float(type, text) : parse_integer(type, text);
}

}  // namespace hologram::isa
