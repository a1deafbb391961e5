// The meaning of every operation on one value: what the interpreter does for each thread.
// docs/isa.md says the same in words.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/dtype.h"

namespace hologram::isa::scalar {

template <typename T>
inline constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool kIsBool = std::is_same_v<T, bool>;
template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !kIsBool<T>;

// f16 and bf16 are computed in f32 and rounded once an instruction.
template <typename T>
using Computed =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;
template <typename T>
Computed<T> widen(T value) {
  return static_cast<Computed<T>>(value);
}

// Unsigned and at least as wide as int: arithmetic in it wraps and never overflows.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <typename T>
T add(T a, T b) {
  if constexpr (kIsFloat<T>)
    return T(widen(a) + widen(b));
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <typename T>
T sub(T a, T b) {
  if constexpr (kIsFloat<T>)
    return T(widen(a) - widen(b));
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}
template <typename T>
T mul(T a, T b) {
  if constexpr (kIsFloat<T>)
    return T(widen(a) * widen(b));
  else
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}
template <typename T>
T neg(T a) {
  if constexpr (kIsFloat<T>)
    return T(-widen(a));
  else
    return static_cast<T>(Wrapping<T>{0} - static_cast<Wrapping<T>>(a));
}
template <typename T>
T abs(T a) {
  if constexpr (kIsFloat<T>)
    return T(std::fabs(widen(a)));
  else
    return a < 0 ? neg(a) : a;
}
// Truncating; the smallest integer divided by -1 wraps to itself. An integer b is not 0.
template <typename T>
T div(T a, T b) {
  if constexpr (kIsFloat<T>)
    return T(widen(a) / widen(b));
  else if constexpr (std::is_signed_v<T>)
    return b == T{-1} ? neg(a) : static_cast<T>(a / b);
  else
    return static_cast<T>(a / b);
}
// The sign of a; of floats, C's fmod.
template <typename T>
T rem(T a, T b) {
  if constexpr (kIsFloat<T>)
    return T(std::fmod(widen(a), widen(b)));
  else if constexpr (std::is_signed_v<T>)
    return b == T{-1} ? T{0} : static_cast<T>(a % b);
  else
    return static_cast<T>(a % b);
}
// Of floats IEEE 754-2019's minimum and maximum: NaN if either is, and -0 is below +0.
template <typename T>
T min(T a, T b) {
  if constexpr (kIsFloat<T>) {
    const auto x = widen(a), y = widen(b);
    if (x != x || y != y) return T(x + y);
    if (x == y) return std::signbit(x) ? a : b;
    return x < y ? a : b;
  } else {
    return b < a ? b : a;
  }
}
template <typename T>
T max(T a, T b) {
  if constexpr (kIsFloat<T>) {
    const auto x = widen(a), y = widen(b);
    if (x != x || y != y) return T(x + y);
    if (x == y) return std::signbit(x) ? b : a;
    return x > y ? a : b;
  } else {
    return a < b ? b : a;
  }
}
// Two roundings, exactly mul then add.
template <typename T>
T mad(T a, T b, T c) {
  return add(mul(a, b), c);
}
// One rounding (f16 and bf16: one to f32, one to the type).
template <typename T>
T fma(T a, T b, T c) {
  return T(std::fma(widen(a), widen(b), widen(c)));
}

// Of floats as IEEE 754: NaN is unequal to everything and in no order.
template <typename T>
bool eq(T a, T b) {
  return widen(a) == widen(b);
}
template <typename T>
bool ne(T a, T b) {
  return widen(a) != widen(b);
}
template <typename T>
bool lt(T a, T b) {
  return widen(a) < widen(b);
}
template <typename T>
bool le(T a, T b) {
  return widen(a) <= widen(b);
}
template <typename T>
bool gt(T a, T b) {
  return widen(a) > widen(b);
}
template <typename T>
bool ge(T a, T b) {
  return widen(a) >= widen(b);
}

template <typename T>
T bit_and(T a, T b) {
  return static_cast<T>(a & b);
}
template <typename T>
T bit_or(T a, T b) {
  return static_cast<T>(a | b);
}
template <typename T>
T bit_xor(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <typename T>
T bit_not(T a) {
  if constexpr (kIsBool<T>)
    return !a;
  else
    return static_cast<T>(~a);
}
// amount < bits of T. shr copies the sign of signed integers.
template <typename T>
T shl(T a, uint32_t amount) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) << amount);
}
template <typename T>
T shr(T a, uint32_t amount) {
  return static_cast<T>(a >> amount);
}

// Integers wrap into integers; floats saturate into integers, NaN becomes 0; what is not zero is
// true; values round to nearest even into floats, integers on their way to f16 and bf16 through
// f32.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsBool<To>) {
    return widen(value) != Computed<From>{0};
  } else if constexpr (kIsFloat<To>) {
    if constexpr (std::is_same_v<From, double> && std::is_same_v<To, Half>) {
      Half result;
      result.bits = f64_to_f16(value);
      return result;
    } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, BFloat16>) {
      BFloat16 result;
      result.bits = f64_to_bf16(value);
      return result;
    } else {
      return To(static_cast<Computed<To>>(widen(value)));
    }
  } else if constexpr (kIsFloat<From>) {
    const auto x = widen(value);
    using Float = Computed<From>;
    using Limits = std::numeric_limits<To>;
    if (x != x) return To{0};
    if (x <= static_cast<Float>(Limits::min())) return Limits::min();
    // One past the largest: a power of two, so exact where the largest itself is not.
    const Float past = std::ldexp(Float{1}, Limits::digits);
    return x >= past ? Limits::max() : static_cast<To>(x);
  } else {
    return static_cast<To>(value);
  }
}

// The mathematical functions, in higher precision: double for f32 (and so f16, bf16), long double
// for f64; one rounding to f32 or f64, one more to f16 or bf16.
template <typename T>
using Precise = std::conditional_t<std::is_same_v<T, double>, long double, double>;

#define HOLOGRAM_ISA_PRECISE(name, expression)      \
  template <typename T>                             \
  T name(T a) {                                     \
    using P = Precise<T>;                           \
    const P x = static_cast<P>(widen(a));           \
    return T(static_cast<Computed<T>>(expression)); \
  }
HOLOGRAM_ISA_PRECISE(exp, std::exp(x))
HOLOGRAM_ISA_PRECISE(exp2, std::exp2(x))
HOLOGRAM_ISA_PRECISE(expm1, std::expm1(x))
HOLOGRAM_ISA_PRECISE(log, std::log(x))
HOLOGRAM_ISA_PRECISE(log1p, std::log1p(x))
HOLOGRAM_ISA_PRECISE(log2, std::log2(x))
HOLOGRAM_ISA_PRECISE(log10, std::log10(x))
HOLOGRAM_ISA_PRECISE(rsqrt, P{1} / std::sqrt(x))
HOLOGRAM_ISA_PRECISE(sin, std::sin(x))
HOLOGRAM_ISA_PRECISE(cos, std::cos(x))
HOLOGRAM_ISA_PRECISE(tan, std::tan(x))
HOLOGRAM_ISA_PRECISE(asin, std::asin(x))
HOLOGRAM_ISA_PRECISE(acos, std::acos(x))
HOLOGRAM_ISA_PRECISE(atan, std::atan(x))
HOLOGRAM_ISA_PRECISE(sinh, std::sinh(x))
HOLOGRAM_ISA_PRECISE(cosh, std::cosh(x))
HOLOGRAM_ISA_PRECISE(tanh, std::tanh(x))
HOLOGRAM_ISA_PRECISE(asinh, std::asinh(x))
HOLOGRAM_ISA_PRECISE(acosh, std::acosh(x))
HOLOGRAM_ISA_PRECISE(atanh, std::atanh(x))
// exp(-x) may overflow to infinity, which gives the right 0.
HOLOGRAM_ISA_PRECISE(sigmoid, P{1} / (P{1} + std::exp(-x)))
HOLOGRAM_ISA_PRECISE(erf, std::erf(x))
#undef HOLOGRAM_ISA_PRECISE

template <typename T>
T pow(T a, T b) {
  using P = Precise<T>;
  return T(static_cast<Computed<T>>(std::pow(static_cast<P>(widen(a)), static_cast<P>(widen(b)))));
}

// Correctly rounded as they are.
template <typename T>
T sqrt(T a) {
  return T(std::sqrt(widen(a)));
}
template <typename T>
T floor(T a) {
  return T(std::floor(widen(a)));
}
template <typename T>
T ceil(T a) {
  return T(std::ceil(widen(a)));
}
// Half to even: the default rounding mode, which nothing here changes.
template <typename T>
T round(T a) {
  return T(std::nearbyint(widen(a)));
}
template <typename T>
T trunc(T a) {
  return T(std::trunc(widen(a)));
}

}  // namespace hologram::isa::scalar
