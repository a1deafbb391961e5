// exp, exp2, expm1 and what is made of them: sigmoid, tanh, sinh, cosh.
//
// x = n ln2 + r with |r| <= ln2/2, then exp(x) = 2^n exp(r). ln2 is in two parts, the first with so
// few bits that n times it is exact with or without a fused multiply-add.
#include "codegen/math/coefficients.h"
#include "codegen/math/number.h"

namespace hologram::codegen::math {
namespace {

struct Reduced {
  Number n;  // a whole number, as a float
  Number r;
};

Reduced reduce(Number x) {
  const Number n = nearest(x * kLog2E[0]);
  const double* const ln2 = x.is_f32() ? kLn2F32 : kLn2F64;
  return {n, mad(n, -ln2[1], mad(n, -ln2[0], x))};
}

// exp(r) - 1 - r, |r| <= ln2/2.
Number exp_tail(Number r) {
  const Number q = r.is_f32() ? polynomial(r, kExpF32) : polynomial(r, kExpF64);
  return q * r * r;
}

// value * 2^n in two steps, so that neither factor overflows; the second step rounds.
Number scale(Number value, Number n) {
  const Number half = n >> 1;
  return value * power_of_two(half) * power_of_two(n - half);
}

}  // namespace

Number exp_near_zero(Number r) { return exp_tail(r) + r + 1.0; }

Number exp_scaled(Number x, int exponent) {
  // Beyond these the result is 0 or infinity anyway.
  const Number clamped =
      x.is_f32() ? at_most(at_least(x, -104.5), 90.0) : at_most(at_least(x, -746.0), 711.5);
  const auto [n, r] = reduce(clamped);
  // NaN has no integer; whatever n becomes then, NaN times it is NaN.
  const Number integer = to_integer(select(is_nan(x), 0.0, n));
  return scale(exp_near_zero(r), integer + integer.integer(exponent));
}

Number exp_normal(Number x) {
  const auto [n, r] = reduce(x);
  return exp_near_zero(r) * power_of_two(to_integer(n));
}

Number exp(Number x) { return exp_scaled(x, 0); }

Number exp2(Number x) {
  const Number clamped =
      x.is_f32() ? at_most(at_least(x, -151.0), 129.0) : at_most(at_least(x, -1076.0), 1025.0);
  const Number n = nearest(clamped);
  const Number r = (clamped - n) * kLn2;
  return scale(exp_near_zero(r), to_integer(select(is_nan(x), 0.0, n)));
}

Number expm1(Number x) {
  // Below -40 the result is -1; above 709.8 it is infinity.
  const Number clamped = at_most(at_least(x, -40.0), 709.9);
  const auto [n, r] = reduce(clamped);
  // 2^n (exp(r) - 1) + (2^n - 1), with half of 2^n because 2^1024 is too much.
  const Number half = power_of_two(to_integer(select(is_nan(x), 0.0, n)) - bits(x).integer(1));
  const Number small = exp_tail(r) + r;
  const Number result = mad(half, small, half - 0.5) * 2.0;
  return select(equal(n, 0.0), select(equal(x, 0.0), x, small), result);
}

Number sigmoid(Number x) {
  // exp of something negative never overflows, and e / (1 + e) keeps the smallest results.
  const Number e = exp(-abs(x));
  const Number sum = e + 1.0;
  const Number is_negative = x < 0.0;
  const Number quotient = select(is_negative, e, 1.0) / sum;
  if (!x.is_f32()) return quotient;
  // What the sum lost, divided by the sum: just below a power of two that shows as an ulp.
  const Number lost = e - (sum - 1.0);
  const Number inverse = select(is_negative, 1.0 - quotient, quotient);
  return mad(quotient, -(lost * inverse), quotient);
}

Number tanh(Number x) {
  const Number a = abs(x);
  if (!x.is_f32()) {
    const Number t = expm1(at_most(a, 22.0) * 2.0);
    return with_sign_of(t / (t + 2.0), x);
  }
  // Both sides at once: the odd polynomial, and 1 - 2 / (exp(2x) + 1).
  const Number z = x * x;
  const Number small = mad(polynomial(z, kTanhF32) * z, x, x);
  const Number large = 1.0 - x.constant(2.0) / (exp_normal(at_most(a, 10.0) * 2.0) + 1.0);
  return with_sign_of(select(a < 0.625, small, select(is_nan(x), x, large)), x);
}

Number sinh(Number x) {
  const Number a = abs(x);
  const Number t = expm1(at_most(a, 2.0));
  const Number small = (t + t / (t + 1.0)) * 0.5;
  const Number half = exp_scaled(a, -1);
  const Number large = half - x.constant(0.25) / half;
  return with_sign_of(select(a < 1.0, small, large), x);
}

Number cosh(Number x) {
  const Number half = exp_scaled(abs(x), -1);
  return half + x.constant(0.25) / half;
}

}  // namespace hologram::codegen::math
