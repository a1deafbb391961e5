// saturated<T>(v): a number in any type. Integers round towards zero and stop at their limits; not
// a number becomes 0. Sums of weights that add up to 1 in exact arithmetic come out a little below
// a whole number at times (2.9999999999999996): the tiny factor keeps them.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

namespace hologram::kernels {

template <typename T>
T saturated(double v) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(v);
  } else {
    using Limits = std::numeric_limits<T>;
    v = std::trunc(v * (1 + 1e-12));
    if (!(v > static_cast<double>(Limits::lowest()))) return v != v ? T(0) : Limits::lowest();
    return v >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(v);
  }
}

// A number as an integer, towards zero; it stops at the type's limits, and what is no number is 0.
template <typename T>
T truncated(double v) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(v);
  } else {
    using Limits = std::numeric_limits<T>;
    if (!(v > static_cast<double>(Limits::lowest()))) return v != v ? T(0) : Limits::lowest();
    return v >= static_cast<double>(Limits::max()) ? Limits::max() : static_cast<T>(v);
  }
}

}  // namespace hologram::kernels
