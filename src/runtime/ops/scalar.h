// Scalar: a number given to an op on the host, of any arithmetic type, made the op's type exactly.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "support/dtype.h"
#include "support/result.h"

namespace hologram::runtime::ops {

class Scalar {
 public:
  template <std::signed_integral T>
  Scalar(T value)
      : kind_(Kind::whole), whole_(static_cast<uint64_t>(int64_t{value})), negative_(value < 0) {}
  template <std::unsigned_integral T>
  Scalar(T value) : kind_(Kind::whole), whole_(uint64_t{value}) {}
  template <std::floating_point T>
  Scalar(T value) : kind_(Kind::real), real_(static_cast<double>(value)) {}

  // The bits of the value as `type`, zero-extended; rounded to a float type. invalid_argument where
  // an integer type cannot hold it exactly.
  Result<uint64_t> bits_as(DType type) const {
    // What the hot ops pass, without leaving the caller.
    if (kind_ == Kind::real && type == DType::f32)
      return uint64_t{std::bit_cast<uint32_t>(static_cast<float>(real_))};
    return convert_to(type);
  }

 private:
  enum class Kind : uint8_t { whole, real };
  double as_double() const;
  Result<uint64_t> convert_to(DType type) const;

  Kind kind_;
  uint64_t whole_ = 0;  // two's complement where negative
  bool negative_ = false;
  double real_ = 0;
};

}  // namespace hologram::runtime::ops
