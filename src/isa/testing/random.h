// Random: SplitMix64 and what the generator draws from it. The same numbers on every machine, which
// the distributions of the standard library do not promise.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "support/dtype.h"

namespace hologram::isa::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x1234567) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // 0 .. bound-1
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }
  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[below(static_cast<uint32_t>(values.size()))];
  }

  // The bits of a value: small, special or any.
  uint64_t bits(DType type);

 private:
  uint64_t state_;
};

}  // namespace hologram::isa::testing
