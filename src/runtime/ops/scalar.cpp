#include "runtime/ops/scalar.h"

#include <cmath>

#include "backends/argument.h"

namespace hologram::runtime::ops {

double Scalar::as_double() const {
  if (kind_ == Kind::real) return real_;
  return negative_ ? static_cast<double>(static_cast<int64_t>(whole_))
                   : static_cast<double>(whole_);
}

Result<uint64_t> Scalar::convert_to(DType type) const {
  switch (type) {
    case DType::boolean:
      return static_cast<uint64_t>(as_double() != 0);
    case DType::f16:
      return f64_to_f16(as_double());
    case DType::bf16:
      return f64_to_bf16(as_double());
    case DType::f32:
      return backends::scalar_bits(static_cast<float>(as_double()));
    case DType::f64:
      return backends::scalar_bits(as_double());
    default:
      break;
  }
  if (!is_integer(type)) return fail(ErrorCode::unsupported, "a scalar of type {}", name_of(type));
  const unsigned bits = bits_of(type);
  const bool is_signed = is_signed_integer(type);
  uint64_t whole = whole_;
  bool negative = negative_;
  bool fits = true;
  if (kind_ == Kind::real) {
    // Powers of two are exact as doubles; not-a-number fails every comparison.
    const double high = std::ldexp(1.0, static_cast<int>(is_signed ? bits - 1 : bits));
    fits = real_ == std::trunc(real_) && real_ < high && real_ >= (is_signed ? -high : 0.0);
    negative = real_ < 0;
    if (fits)
      whole = negative ? static_cast<uint64_t>(static_cast<int64_t>(real_))
                       : static_cast<uint64_t>(real_);
  } else if (negative) {
    fits = is_signed && static_cast<int64_t>(whole) >= -(int64_t{1} << (bits - 2)) * 2;
  } else {
    const unsigned value_bits = is_signed ? bits - 1 : bits;
    fits = value_bits == 64 || whole >> value_bits == 0;
  }
  if (!fits)
    return fail(ErrorCode::invalid_argument, "{} is no value of type {}", as_double(),
                name_of(type));
  return bits == 64 ? whole : whole & ((uint64_t{1} << bits) - 1);
}

}  // namespace hologram::runtime::ops
