// log, log1p, log2, log10, the inverse hyperbolic functions and pow.
//
// x = 2^e m with sqrt(1/2) <= m < sqrt(2); then log(x) = e ln2 + log(m).
#include <limits>

#include "codegen/math/coefficients.h"
#include "codegen/math/number.h"

namespace hologram::codegen::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Parts {
  Number exponent;  // a whole number, as a float
  Number mantissa;
};

// Of a positive number, subnormals included.
Parts split(Number x) {
  const bool is_f32 = x.is_f32();
  const Number tiny = x < (is_f32 ? 0x1p-126 : 0x1p-1022);
  const Number scaled = select(tiny, x * (is_f32 ? 0x1p24 : 0x1p54), x);
  const Number pattern = bits(scaled);
  const unsigned fraction = is_f32 ? 23 : 52;
  // The bits of sqrt(1/2), so that the mantissa starts there.
  const Number start = pattern.integer(is_f32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
  const Number e = (pattern - start) >> fraction;
  const Number mantissa = from_bits(pattern - (e << fraction));
  const Number correction = select(tiny, x.constant(is_f32 ? -24.0 : -54.0), 0.0);
  return {to_float(e) + correction, mantissa};
}

// What log gives for 0, negative numbers, infinity and NaN.
Number with_special_values(Number x, Number result) {
  const Number at_edges = select(equal(x, kInfinity) | is_nan(x), x, result);
  const Number with_zero = select(equal(x, 0.0), -kInfinity, at_edges);
  return select(x < 0.0, kNaN, with_zero);
}

// log(1 + f) - f, sqrt(1/2) <= 1 + f < sqrt(2).
Number log_tail(Number f) {
  const Number half_square = f * f * 0.5;
  if (f.is_f32()) return mad(polynomial(f, kLogF32) * f, f * f, -half_square);
  const Number s = f / (f + 2.0);
  const Number z = s * s;
  return s * mad(polynomial(z, kLogF64), z, half_square) - half_square;
}

}  // namespace

Number log(Number x) {
  const auto [e, m] = split(x);
  const Number f = m - 1.0;
  const double* const ln2 = x.is_f32() ? kLn2F32 : kLn2F64;
  const Number low = mad(e, ln2[1], log_tail(f)) + f;
  return with_special_values(x, mad(e, ln2[0], low));
}

Number log1p(Number x) {
  const Number u = x + 1.0;
  // What the sum lost, from the larger operand's side.
  const Number lost = select(x < 1.0, x - (u - 1.0), 1.0 - (u - x));
  const Number result = log(u) + lost / u;
  return select(equal(x, 0.0) | equal(x, kInfinity), x, select(equal(u, 0.0), -kInfinity, result));
}

Number log2(Number x) {
  const auto [e, m] = split(x);
  const Number f = m - 1.0;
  const Number l = log_tail(f) + f;
  return with_special_values(x, mad(l, kLog2E[0], mad(l, kLog2E[1], e)));
}

Number log10(Number x) {
  const auto [e, m] = split(x);
  const Number f = m - 1.0;
  const Number l = log_tail(f) + f;
  const Number low = mad(l, kLog10E, e * kLog10Of2[1]);
  return with_special_values(x, mad(e, kLog10Of2[0], low));
}

Number asinh(Number x) {
  const Number a = abs(x);
  const Number square = a * a;
  const Number usual = log1p(a + square / (sqrt(square + 1.0) + 1.0));
  const Number huge = log(a) + kLn2;
  const Number result = select(a > 0x1p28, huge, usual);
  return with_sign_of(select(equal(x, 0.0), x, result), x);
}

Number acosh(Number x) {
  const Number t = x - 1.0;
  const Number usual = log1p(t + sqrt(t * (t + 2.0)));
  const Number huge = log(x) + kLn2;
  return select(x < 1.0, kNaN, select(x > 0x1p28, huge, usual));
}

Number atanh(Number x) {
  const Number a = abs(x);
  const Number result = log1p(a * 2.0 / (1.0 - a)) * 0.5;
  return with_sign_of(select(equal(a, 1.0), kInfinity, result), x);
}

// 2^(y log2(x)), with the logarithm to about 65 bits: y multiplies its error by up to 1024.
Number pow(Number x, Number y) {
  const Number a = abs(x);
  const auto [e, m] = split(a);
  // s = (m-1)/(m+1) and log(m) = 2s + 2/3 s^3 + s^5 P(s^2); the first two terms in pairs.
  const Number f = m - 1.0;
  const Pair denominator = exact_sum(m, m.constant(1.0));
  const Number s = f / denominator.value;
  const Pair back = exact_product(s, denominator.value);
  const Number s_error =
      (((f - back.value) - back.error) - s * denominator.error) / denominator.value;
  const Pair square = exact_product(s, s);
  const Pair cube = exact_product(square.value, s);
  const Number cube_error = cube.error + square.error * s + square.value * s_error * 3.0;
  constexpr double kTwoThirds = 0x1.5555555555555p-1, kTwoThirdsRest = 0x1.5555555555555p-55;
  const Pair third = exact_product(cube.value, cube.value.constant(kTwoThirds));
  const Number fifth = polynomial(square.value, kPowLogF64) * square.value * cube.value;
  const Pair sum = exact_sum(s * 2.0, third.value);
  const Number sum_error = sum.error + third.error + cube_error * kTwoThirds +
                           cube.value * kTwoThirdsRest + s_error * 2.0 + fifth;
  const Pair natural = exact_sum(sum.value, sum_error);
  // log2(x) = e + log(m) / ln2.
  const Pair scaled = exact_product(natural.value, natural.value.constant(kLog2E[0]));
  const Number scaled_error = scaled.error + natural.value * kLog2E[1] + natural.error * kLog2E[0];
  const Pair whole = exact_sum(e, scaled.value);
  const Pair log2x = exact_sum(whole.value, whole.error + scaled_error);

  // y log2(x) = n + r. Clamped first: what is far out of range must not become NaN.
  const Number factor = at_most(at_least(y, -0x1p70), 0x1p70);
  const Pair product = exact_product(factor, log2x.value);
  const Number product_error = product.error + factor * log2x.error;
  const Number bounded = at_most(at_least(product.value, -1080.0), 1030.0);
  const Number in_range = equal(bounded, product.value);
  const Number n = nearest(bounded);
  const Number rest = (bounded - n) + select(in_range, product_error, 0.0);
  const Number fine = exp_near_zero(rest * kLn2);
  const Number integer = to_integer(select(is_nan(n), 0.0, n));
  const Number half = integer >> 1;
  Number result = fine * power_of_two(half) * power_of_two(integer - half);

  // The special values of C.
  const Number is_whole = equal(trunc(y), y);
  const Number is_even = equal(trunc(y * 0.5) * 2.0, y);
  const Number is_odd = is_whole & !is_even;
  const Number negative = x < 0.0;
  const Number one = equal(a, 1.0);
  const Number vanishing = select(y < 0.0, y.constant(kInfinity), 0.0);  // of 0 to the y
  const Number growing = select(y < 0.0, y.constant(0.0), kInfinity);    // of infinity to the y
  result = select(equal(a, 0.0), vanishing, result);
  result = select(equal(a, kInfinity), growing, result);
  const Number endless = equal(abs(y), kInfinity);
  result = select(endless, select(a > 1.0, growing, vanishing), result);
  result = select(one, 1.0, result);
  // A negative base, -0 among them: the sign of an odd power, and nothing for fractions.
  const Number sign_bit = x.with(x.b().CreateICmpSLT(bits(x).value, bits(x).integer(0).value));
  result = select(sign_bit & is_odd, -result, result);
  const Number finite_negative = negative & !equal(a, kInfinity);
  result = select(finite_negative & !is_whole, kNaN, result);
  result = select(is_nan(x) | is_nan(y), kNaN, result);
  return select(equal(x, 1.0) | equal(y, 0.0), 1.0, result);
}

}  // namespace hologram::codegen::math
