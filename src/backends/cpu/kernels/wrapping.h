// Arithmetic of tensor elements: integers wrap around, as ONNX and NumPy have it. Written in
// unsigned numbers, since signed ones may not overflow in C++.
#pragma once

#include <type_traits>

namespace hologram::kernels {

template <typename T, typename Operation>
constexpr T wrapping(T a, T b, Operation operation) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Unsigned = std::make_unsigned_t<decltype(T() + T())>;  // no narrower than unsigned int
    return static_cast<T>(operation(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return static_cast<T>(operation(a, b));
  }
}
template <typename T>
constexpr T wrapping_add(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x + y; });
}
template <typename T>
constexpr T wrapping_subtract(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x - y; });
}
template <typename T>
constexpr T wrapping_multiply(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x * y; });
}

}  // namespace hologram::kernels
