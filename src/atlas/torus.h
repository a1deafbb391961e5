// The torus Z/48 x Z/96: integers project onto it, and its three operations agree with those of the
// integers: pi(a+b) = pi(a) (+) pi(b), pi(ab) = pi(a) (x) pi(b), pi(ka) = k (.) pi(a).
#pragma once

#include <concepts>
#include <cstdint>

namespace hologram::atlas {

inline constexpr int kTorusPages = 48;
inline constexpr int kTorusClasses = 96;

template <typename T>
concept TorusInteger =
    std::integral<T> || std::same_as<T, __int128> || std::same_as<T, unsigned __int128>;

// Euclidean: the remainder is never negative.
template <TorusInteger T>
constexpr uint8_t euclidean_remainder(T value, int modulus) {
  const int remainder = static_cast<int>(value % static_cast<T>(modulus));
  return static_cast<uint8_t>(remainder < 0 ? remainder + modulus : remainder);
}

struct TorusPoint {
  uint8_t page = 0;       // mod 48
  uint8_t resonance = 0;  // mod 96
  bool operator==(const TorusPoint&) const = default;
};

inline constexpr TorusPoint kTorusZero{0, 0};
inline constexpr TorusPoint kTorusOne{1, 1};

template <TorusInteger T>
constexpr TorusPoint project(T n) {
  return {euclidean_remainder(n, kTorusPages), euclidean_remainder(n, kTorusClasses)};
}

constexpr TorusPoint add(TorusPoint a, TorusPoint b) {
  return {static_cast<uint8_t>((a.page + b.page) % kTorusPages),
          static_cast<uint8_t>((a.resonance + b.resonance) % kTorusClasses)};
}
constexpr TorusPoint negate(TorusPoint a) {
  return {static_cast<uint8_t>((kTorusPages - a.page) % kTorusPages),
          static_cast<uint8_t>((kTorusClasses - a.resonance) % kTorusClasses)};
}
constexpr TorusPoint multiply(TorusPoint a, TorusPoint b) {
  return {static_cast<uint8_t>(a.page * b.page % kTorusPages),
          static_cast<uint8_t>(a.resonance * b.resonance % kTorusClasses)};
}
template <TorusInteger T>
constexpr TorusPoint scale(T k, TorusPoint a) {
  return multiply(project(k), a);
}

}  // namespace hologram::atlas
