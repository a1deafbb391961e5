// Helpers of the runtime's tests: typed values, tensors of any layout, oracles in long double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/executor.h"

namespace hologram::runtime::testing {

inline const Executor& executor() {
  static const Executor made = *Executor::create(Config{});
  return made;
}

// Unwraps; an error fails the test with its text.
template <typename T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result) << (result ? std::string() : result.error().to_string());
  return std::move(result).value();
}
#define EXPECT_OK(...)                                                                \
  do {                                                                                \
    const auto holo_status = (__VA_ARGS__);                                           \
    EXPECT_TRUE(holo_status) << (holo_status ? "" : holo_status.error().to_string()); \
  } while (false)
#define EXPECT_REFUSED(code_wanted, text, ...)                               \
  do {                                                                       \
    const auto holo_status = (__VA_ARGS__);                                  \
    ASSERT_FALSE(holo_status) << "not refused: " #__VA_ARGS__;               \
    EXPECT_EQ(holo_status.error().code(), ErrorCode::code_wanted);           \
    EXPECT_NE(holo_status.error().to_string().find(text), std::string::npos) \
        << holo_status.error().to_string();                                  \
  } while (false)

template <typename T>
long double wide(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<long double>(value);
  else
    return static_cast<long double>(static_cast<float>(value));
}
template <typename T>
T narrow(long double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

// Distance between representable values near 1, relative: one unit in the last place.
template <typename T>
long double ulp() {
  if constexpr (std::is_same_v<T, Half>) return 0x1p-10L;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-7L;
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::epsilon();
  return 0;
}
template <typename T>
inline constexpr bool kIsFloat = !std::is_integral_v<T>;

template <typename T>
::testing::AssertionResult near(T got, long double want, long double ulps, long double slack = 0) {
  if constexpr (!kIsFloat<T>) {
    if (wide(got) == want) return ::testing::AssertionSuccess();
  } else {
    if (std::isnan(want) && std::isnan(wide(got))) return ::testing::AssertionSuccess();
    if (wide(got) == want) return ::testing::AssertionSuccess();
    // Subnormal results have an absolute spacing.
    const long double least = std::is_same_v<T, Half>     ? 0x1p-24L
                              : std::is_same_v<T, double> ? 0x1p-1074L
                                                          : 0x1p-149L;
    const long double allowed = std::max(ulps * ulp<T>() * std::fabs(want), least) + slack;
    if (std::fabs(wide(got) - want) <= allowed) return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << static_cast<double>(wide(got)) << " is not " << static_cast<double>(want) << " within "
         << static_cast<double>(ulps) << " ulp";
}

// Small whole-ish values: sums and products stay exact or nearly so in every type.
template <typename T>
std::vector<T> random_values(size_t count, unsigned seed, double low, double high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<T> values(count);
  for (T& value : values) {
    const double drawn = draw(random);
    value = narrow<T>(std::is_integral_v<T> ? std::floor(drawn) : drawn);
  }
  return values;
}

template <typename T>
Tensor make(const std::vector<T>& values, const Dims& dims) {
  return value_of(executor().tensor(std::span<const T>(values), dims));
}
// The same elements behind other strides: 0 row-major, 1 transposed, 2 every other element of a
// larger tensor, 3 reversed along the last axis.
template <typename T>
Tensor make_strided(const std::vector<T>& values, const Dims& dims, int layout) {
  const Tensor plain = make(values, dims);
  if (layout == 0 || dims.empty()) return plain;
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  if (layout == 1 && dims.size() >= 2) {
    Dims turned = dims;
    std::swap(turned[0], turned[dims.size() - 1]);
    const Tensor other = value_of(executor().empty(plain.type(), turned));
    const Tensor view = value_of(other.transpose(0, -1));
    EXPECT_OK(copy_elements(plain, view));
    return view;
  }
  if (layout == 2) {
    Dims larger = dims;
    larger[dims.size() - 1] *= 2;
    const Tensor other = value_of(executor().empty(plain.type(), larger));
    const Tensor view = value_of(other.slice(last, 0, larger[dims.size() - 1], 2));
    EXPECT_OK(copy_elements(plain, view));
    return view;
  }
  if (dims[dims.size() - 1] == 0) return plain;
  const Tensor other = value_of(executor().empty(plain.type(), dims));
  const Tensor view = value_of(other.slice(last, -1, -dims[dims.size() - 1] - 1, -1));
  EXPECT_OK(copy_elements(plain, view));
  return view;
}

// The flat index into a tensor of `dims` that broadcasting gives element `index` of `out`.
inline size_t broadcast_index(const Dims& out, const Dims& dims, size_t index) {
  size_t result = 0, stride = 1;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = out.size() - 1 - i;
    const size_t coordinate = index % static_cast<size_t>(out[at]);
    index /= static_cast<size_t>(out[at]);
    if (i < dims.size()) {
      const auto dim = static_cast<size_t>(dims[dims.size() - 1 - i]);
      result += (dim == 1 ? 0 : coordinate) * stride;
      stride *= dim;
    }
  }
  return result;
}

}  // namespace hologram::runtime::testing
