#include "holotensor/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "holotensor/byte_io.h"

namespace hologram::holotensor {
namespace {

template <typename T, typename Convert>
void each_to(std::span<const std::byte> from, std::span<float> to, Convert convert) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = convert(load<T>(from.data() + i * sizeof(T)));
}

template <typename T, typename Convert>
void each_from(std::span<const float> from, std::span<std::byte> to, Convert convert) {
  for (size_t i = 0; i < from.size(); ++i) {
    const T value = convert(from[i]);
    std::memcpy(to.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
T saturate(float value) {
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(static_cast<double>(value));
  // The limits of 64-bit types are not doubles: compare, then convert.
  if (rounded >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

bool is_fp8(DType type) { return type >= DType::f8e4m3fn && type <= DType::f8e5m2fnuz; }

// Calls visit(T{}, to_float, from_float) for the type; false when there is no conversion.
template <typename Visit>
bool with_type(DType type, Visit visit) {
  const auto plain = [&]<typename T>(T) {
    visit(
        T{}, [](T v) { return static_cast<float>(v); }, [](float v) { return saturate<T>(v); });
    return true;
  };
  switch (type) {
    case DType::i8:
      return plain(int8_t{});
    case DType::i16:
      return plain(int16_t{});
    case DType::i32:
      return plain(int32_t{});
    case DType::i64:
      return plain(int64_t{});
    case DType::u8:
      return plain(uint8_t{});
    case DType::u16:
      return plain(uint16_t{});
    case DType::u32:
      return plain(uint32_t{});
    case DType::u64:
      return plain(uint64_t{});
    case DType::f16:
      visit(uint16_t{}, f16_to_f32, f32_to_f16);
      return true;
    case DType::bf16:
      visit(uint16_t{}, bf16_to_f32, f32_to_bf16);
      return true;
    case DType::f64:
      visit(
          double{}, [](double v) { return static_cast<float>(v); },
          [](float v) { return static_cast<double>(v); });
      return true;
    default:
      break;
  }
  if (!is_fp8(type)) return false;
  visit(
      uint8_t{}, [type](uint8_t v) { return small_float_to_f32(type, v); },
      [type](float v) { return f32_to_small_float(type, v); });
  return true;
}

Status unsupported(DType type) {
  return fail(ErrorCode::unsupported,
              "no conversion between f32 and {}; there is one for f16, bf16, f64, fp8 and integers",
              name_of(type));
}

}  // namespace

bool converts_to_f32(DType type) {
  return type == DType::f32 || with_type(type, [](auto, auto, auto) {});
}

Status to_f32(DType type, std::span<const std::byte> from, std::span<float> to) {
  if (from.size() != bytes_for(type, to.size()))
    return fail(ErrorCode::shape_mismatch, "{} bytes are not {} elements of {}", from.size(),
                to.size(), name_of(type));
  if (type == DType::f32) {
    if (!to.empty()) std::memcpy(to.data(), from.data(), from.size());
    return {};
  }
  const bool known =
      with_type(type, [&]<typename T>(T, auto to_float, auto) { each_to<T>(from, to, to_float); });
  return known ? Status{} : unsupported(type);
}

Status from_f32(std::span<const float> from, DType type, std::span<std::byte> to) {
  if (to.size() != bytes_for(type, from.size()))
    return fail(ErrorCode::shape_mismatch, "{} bytes do not hold {} elements of {}", to.size(),
                from.size(), name_of(type));
  if (type == DType::f32) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), to.size());
    return {};
  }
  const bool known = with_type(
      type, [&]<typename T>(T, auto, auto from_float) { each_from<T>(from, to, from_float); });
  return known ? Status{} : unsupported(type);
}

void ErrorSum::add(std::span<const float> source, std::span<const float> reconstruction) {
  for (size_t i = 0; i < source.size(); ++i) {
    if (!std::isfinite(source[i])) continue;
    const double value = source[i];
    const double error = value - static_cast<double>(reconstruction[i]);
    squared_value += value * value;
    squared_error += error * error;
    max_error = std::max(max_error, std::abs(error));
  }
}

void ErrorSum::add(const ErrorSum& other) {
  squared_error += other.squared_error;
  squared_value += other.squared_value;
  max_error = std::max(max_error, other.max_error);
}

Quality ErrorSum::quality(bool exact) const {
  Quality quality{.nmse = 0, .max_error = max_error, .exact = exact};
  if (squared_error > 0)
    quality.nmse =
        squared_value > 0 ? squared_error / squared_value : std::numeric_limits<double>::infinity();
  return quality;
}

}  // namespace hologram::holotensor
