// Conversions that no pointwise program can make: to and from strings and the types that only
// store (8-bit and smaller floats, 4-bit and 2-bit integers).
//
// A block of elements is read as doubles or as 64-bit integers, then written in the other type, so
// that every pair of types is one reader and one writer.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/unpacked.h"

namespace hologram::kernels {
namespace {

constexpr int64_t kBlock = 512;

bool is_small_float(DType type) { return type >= DType::f8e4m3fn && type <= DType::f4e2m1; }
bool is_small_integer(DType type) { return type >= DType::i4 && type <= DType::u2; }

enum class ScaleRounding { up, down, nearest };

struct Mode {
  bool saturate;
  ScaleRounding rounding;
};

// Values on their way from one type to another.
struct Block {
  enum Kind { floating, integer, unsigned_integer } kind;
  std::array<double, kBlock> numbers;
  std::array<int64_t, kBlock> integers;  // bits; unsigned where the kind says so
};

// f64 to f32 such that a second rounding to fewer bits gives what one rounding would have given.
float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(nearest) || std::isnan(value))
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// Powers of two from 2^-127 to 2^127, and NaN. What it does with a sign is nobody's rule.
uint8_t to_scale(float value, Mode mode) {
  if (std::isnan(value)) return 0xff;
  const float magnitude = std::fabs(value);
  if (magnitude < 0x1p-127f) return mode.saturate ? 0 : 0xff;
  const uint8_t over = mode.saturate ? 0xfe : 0xff;
  if (std::isinf(magnitude)) return over;
  int exponent;
  const float fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  const bool up = mode.rounding == ScaleRounding::up        ? fraction > 0.5f
                  : mode.rounding == ScaleRounding::nearest ? fraction >= 0.75f
                                                            : false;
  const int code = exponent - 1 + 127 + (up ? 1 : 0);
  return code > 254 ? over : static_cast<uint8_t>(code);
}

uint8_t to_small_float(DType type, double value, Mode mode) {
  const float narrow = round_to_odd(value);
  if (type == DType::f8e8m0) return to_scale(narrow, mode);
  // The one 4-bit float has no NaN; the standard's cases show negative zero.
  if (type == DType::f4e2m1 && std::isnan(narrow)) return 0x8;
  return f32_to_small_float(type, narrow, mode.saturate);
}

template <typename T>
void read_as(const Tensor& in, int64_t at, int64_t count, Block& block) {
  const T* from = in.as<T>() + at;
  if constexpr (std::is_floating_point_v<T>)
    std::copy_n(from, count, block.numbers.begin());
  else
    for (int64_t i = 0; i < count; ++i) block.integers[i] = static_cast<int64_t>(from[i]);
}

Status parse(std::string_view text, DType to, Block& block, int64_t i) {
  auto trimmed = text;
  while (!trimmed.empty() && std::isspace(static_cast<unsigned char>(trimmed.front())))
    trimmed.remove_prefix(1);
  while (!trimmed.empty() && std::isspace(static_cast<unsigned char>(trimmed.back())))
    trimmed.remove_suffix(1);
  if (trimmed.starts_with('+')) trimmed.remove_prefix(1);
  const char *begin = trimmed.data(), *end = begin + trimmed.size();
  auto whole = [&](auto& value) {
    auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end;
  };
  if (block.kind == Block::floating) {
    double value;
    auto [stop, error] = std::from_chars(begin, end, value);
    if (stop != end || begin == end || error == std::errc::invalid_argument)
      return fail(ErrorCode::invalid_argument, "the text '{}' is not a number", text);
    // Beyond a double: from_chars leaves it to us which end it is.
    if (error == std::errc::result_out_of_range)
      value = std::strtod(begin, nullptr);  // an element ends with a zero
    // What was written as an f32 is read as that f32: exactly, not as the digits' own value.
    if ((to == DType::f32 || is_small_float(to)) && std::isfinite(value)) {
      float narrow;
      if (whole(narrow)) value = narrow;
    }
    block.numbers[i] = value;
    return {};
  }
  if (to == DType::boolean) {
    if (trimmed == "true" || trimmed == "True") {
      block.integers[i] = 1;
      return {};
    }
    if (trimmed == "false" || trimmed == "False") {
      block.integers[i] = 0;
      return {};
    }
  }
  uint64_t bits;
  if (whole(block.integers[i])) return {};
  if (whole(bits)) {
    block.integers[i] = static_cast<int64_t>(bits);
    return {};
  }
  // "100.5", "1e3": the whole part, where it fits.
  double value;
  if (!whole(value) || !(std::fabs(value) < 0x1p63))
    return fail(ErrorCode::invalid_argument, "the text '{}' is not an integer", text);
  block.integers[i] = to == DType::boolean ? value != 0 : static_cast<int64_t>(value);
  return {};
}

// `scratch` holds the whole input a byte an element where it is packed.
Status read(const Tensor& in, const uint8_t* scratch, int64_t at, int64_t count, DType to,
            Block& block) {
  const DType from = in.dtype;
  if (from == DType::string) {
    block.kind = is_float(to) || is_small_float(to) ? Block::floating : Block::integer;
    for (int64_t i = 0; i < count; ++i)
      HOLOGRAM_CHECK(parse(in.as<std::string>()[at + i], to, block, i));
    return {};
  }
  block.kind = is_float(from) || is_small_float(from) ? Block::floating
               : from == DType::u64                   ? Block::unsigned_integer
                                                      : Block::integer;
  const auto* bytes = is_packed(from) ? scratch : in.as<uint8_t>();
  if (is_small_float(from)) {
    for (int64_t i = 0; i < count; ++i) block.numbers[i] = small_float_to_f32(from, bytes[at + i]);
  } else if (from == DType::i4 || from == DType::i2) {
    for (int64_t i = 0; i < count; ++i) block.integers[i] = static_cast<int8_t>(bytes[at + i]);
  } else if (from == DType::u4 || from == DType::u2 || from == DType::boolean) {
    for (int64_t i = 0; i < count; ++i) block.integers[i] = bytes[at + i];
  } else if (from == DType::f16 || from == DType::bf16) {
    const uint16_t* halves = in.as<uint16_t>() + at;
    for (int64_t i = 0; i < count; ++i)
      block.numbers[i] = from == DType::f16 ? f16_to_f32(halves[i]) : bf16_to_f32(halves[i]);
  } else {
    return dispatch_number(from, [&]<typename T>() -> Status {
      read_as<T>(in, at, count, block);
      return {};
    });
  }
  return {};
}

double as_double(const Block& block, int64_t i) {
  switch (block.kind) {
    case Block::floating:
      return block.numbers[i];
    case Block::integer:
      return static_cast<double>(block.integers[i]);
    case Block::unsigned_integer:
      return static_cast<double>(static_cast<uint64_t>(block.integers[i]));
  }
  return 0;
}

// Towards zero; beyond the type its nearest end, and 0 for NaN, as the ISA converts.
template <typename T>
T truncate(double value) {
  if (std::isnan(value)) return 0;
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= low) return std::numeric_limits<T>::min();
  if (value >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// As people write numbers: the shortest digits that give the same value, a point or exponent in
// every number that has a fraction.
template <typename T>
void write_text(T value, std::string& text) {
  char digits[32];  // more than the longest double
  const auto end = fmt::format_to_n(digits, sizeof(digits), "{}", value);
  text.assign(digits, end.size);
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value))
      text = "NaN";
    else if (std::isinf(value))
      text = value > 0 ? "INF" : "-INF";
    else if (text.find_first_of(".e") == text.npos)
      text += ".0";
  }
}

void write_text(const Block& block, int64_t i, DType from, std::string& text) {
  switch (block.kind) {
    case Block::integer:
      return write_text(block.integers[i], text);
    case Block::unsigned_integer:
      return write_text(static_cast<uint64_t>(block.integers[i]), text);
    case Block::floating:
      break;
  }
  return from == DType::f64 ? write_text(block.numbers[i], text)
                            : write_text(static_cast<float>(block.numbers[i]), text);
}

template <typename T>
void write_as(const Block& block, const Tensor& out, int64_t at, int64_t count) {
  T* to = out.as<T>() + at;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>)
      to[i] = static_cast<T>(as_double(block, i));
    else
      to[i] = block.kind == Block::floating ? truncate<T>(block.numbers[i])
                                            : static_cast<T>(block.integers[i]);
  }
}

Status write(const Block& block, DType from, Mode mode, const Tensor& out, uint8_t* scratch,
             int64_t at, int64_t count) {
  const DType to = out.dtype;
  auto* bytes = is_packed(to) ? scratch : out.as<uint8_t>();
  if (to == DType::string) {
    for (int64_t i = 0; i < count; ++i) write_text(block, i, from, out.as<std::string>()[at + i]);
  } else if (is_small_float(to)) {
    for (int64_t i = 0; i < count; ++i)
      bytes[at + i] = to_small_float(to, as_double(block, i), mode);
  } else if (is_small_integer(to)) {
    // The low bits of the whole number, for floats too.
    for (int64_t i = 0; i < count; ++i)
      bytes[at + i] = static_cast<uint8_t>(
          block.kind == Block::floating ? truncate<int64_t>(block.numbers[i]) : block.integers[i]);
  } else if (to == DType::boolean) {
    for (int64_t i = 0; i < count; ++i)
      bytes[at + i] =
          block.kind == Block::floating ? block.numbers[i] != 0 : block.integers[i] != 0;
  } else if (to == DType::f16 || to == DType::bf16) {
    uint16_t* halves = out.as<uint16_t>() + at;
    for (int64_t i = 0; i < count; ++i)
      halves[i] =
          to == DType::f16 ? f64_to_f16(as_double(block, i)) : f64_to_bf16(as_double(block, i));
  } else {
    return dispatch_number(to, [&]<typename T>() -> Status {
      write_as<T>(block, out, at, count);
      return {};
    });
  }
  return {};
}

Status cast(KernelContext& c) {
  const Tensor& in = c.input(0);
  const DType from = in.dtype, to = c.output_type(0);
  if (from == to) return c.reshape_output(0, in, in.dims);
  const std::string_view rounding = c.text("round_mode", "up");
  Mode mode{c.integer("saturate", 1) != 0, ScaleRounding::up};
  if (rounding == "down")
    mode.rounding = ScaleRounding::down;
  else if (rounding == "nearest")
    mode.rounding = ScaleRounding::nearest;
  else if (rounding != "up")
    return fail(ErrorCode::invalid_argument, "round_mode '{}'; supported: up, down, nearest",
                rounding);
  HOLOGRAM_TRY(Tensor out, c.output(0, in.dims));
  const int64_t total = in.count();
  std::span<uint8_t> before, after;
  if (is_packed(from)) {
    HOLOGRAM_TRY(before, c.scratch<uint8_t>(total));
    unpack_sub_byte(from, in.data, total, before.data());
  }
  if (is_packed(to)) {
    HOLOGRAM_TRY(after, c.scratch<uint8_t>(total));
  }
  std::mutex mutex;
  Status status;
  c.threads().parallel_for(total, 16 * kBlock, [&](size_t begin, size_t end) {
    Block block;
    for (int64_t at = begin; at < static_cast<int64_t>(end); at += kBlock) {
      const int64_t count = std::min(kBlock, static_cast<int64_t>(end) - at);
      Status part = read(in, before.data(), at, count, to, block);
      if (part) part = write(block, from, mode, out, after.data(), at, count);
      if (part) continue;
      std::lock_guard lock(mutex);
      if (status) status = std::move(part);
      return;
    }
  });
  HOLOGRAM_CHECK(std::move(status));
  if (is_packed(to)) pack_sub_byte(to, after.data(), total, out.data);
  return {};
}

Status bit_cast(KernelContext& c) {
  const DType from = c.input(0).dtype, to = c.output_type(0);
  if (from == DType::string || bits_of(from) != bits_of(to))
    return fail(ErrorCode::type_mismatch, "the bits of {} are not those of {}", name_of(from),
                name_of(to));
  // Other bytes are no bool: reading them as one is undefined.
  if (to == DType::boolean && from != DType::boolean)
    for (const uint8_t byte : c.input(0).span<uint8_t>())
      if (byte > 1)
        return fail(ErrorCode::out_of_range, "the bits of {} are those of no bool", byte);
  // Other bytes are no bool: reading them as one is undefined.
  if (to == DType::boolean && from != DType::boolean)
    for (const uint8_t byte : c.input(0).span<uint8_t>())
      if (byte > 1)
        return fail(ErrorCode::out_of_range, "the bits of {} are those of no bool", byte);
  return c.reshape_output(0, c.input(0), c.input(0).dims);
}

constexpr Kernel kKernels[] = {{"BitCast", bit_cast}, {"Cast", cast}};

}  // namespace

std::span<const Kernel> cast_kernels() { return kKernels; }

}  // namespace hologram::kernels
