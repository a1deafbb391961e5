// SeededRandom: the random numbers a file's seed stands for; the same on every machine, for ever.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace hologram::holotensor {

// SplitMix64 (Steele, Lea, Flood 2014): one addition and three multiplications a number, and any
// two seeds give unrelated streams.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed, uint64_t stream = 0)
      : state_(mix(seed + 0x9E3779B97F4A7C15u * (stream + 1))) {}

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    return mix(state_);
  }
  // Below `bound` (1 or more, under 2^32); the bias is at most bound / 2^32.
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>(((next() >> 32) * uint64_t{bound}) >> 32);
  }
  // In (0, 1].
  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  // Normal, mean 0 and variance 1 (Box and Muller, one of the pair).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

}  // namespace hologram::holotensor
