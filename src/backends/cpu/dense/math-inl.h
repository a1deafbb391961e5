// Elementary functions on vectors of f32, for the code of one CPU level.
//
// Largest errors over all of f32, measured by math_test.cpp on every level: exp 1.5 ulp, log 2 ulp,
// tanh 3 ulp, erf 3 ulp, sigmoid 3 ulp. With fused operations exp and erf are within 1 ulp, and
// they, gelu_erf and the functions called `..._ratio` and `..._quarter` have the bits of ONNX
// Runtime's (see docs/quantize.md). NaN gives NaN, overflow gives infinity, underflow is
// gradual. Included once a level; never include it outside a file compiled by foreach_target.
#if defined(HOLOGRAM_DENSE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_MATH_INL_H_
#undef HOLOGRAM_DENSE_MATH_INL_H_
#else
#define HOLOGRAM_DENSE_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/dense/epilogue.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// c0 + x * (c1 + x * (...)).
template <class D, class V>
HWY_INLINE V horner(D d, V, float last) {
  return hn::Set(d, last);
}
template <class D, class V, typename... Rest>
HWY_INLINE V horner(D d, V x, float first, Rest... rest) {
  return hn::MulAdd(x, horner(d, x, rest...), hn::Set(d, first));
}

// x clamped to [low, high]; NaN stays NaN (x is the second operand, which x86 returns for NaN).
template <class D, class V>
HWY_INLINE V clamp(D d, V x, float low, float high) {
  return hn::Max(hn::Set(d, low), hn::Min(hn::Set(d, high), x));
}

// 2^n for whole n in [-126, 127].
template <class D, class V>
HWY_INLINE V power_of_two(D d, V n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127))));
}

// exp of r in [-log(2) / 2, log(2) / 2].
struct ExpNearZero {
  template <class D, class V>
  static HWY_INLINE V of(D d, V r) {
    return horner(d, r, 1.0f, 1.0f, 0x1.fffff6p-2f, 0x1.555450p-3f, 0x1.555b5ap-5f, 0x1.125edcp-7f,
                  0x1.694000p-10f);
  }
};
// The same for erf, whose results have the bits of the reference with these.
struct ExpNearZeroOfErf {
  template <class D, class V>
  static HWY_INLINE V of(D d, V r) {
    return horner(d, r, 1.0f, 1.0f, 4.99999851e-1f, 1.66664466e-1f, 4.16689515e-2f, 8.37550033e-3f,
                  1.38319808e-3f);
  }
};

// exp without the care for subnormal results and infinity: x in [-87, 88].
template <class Near = ExpNearZero, class D, class V>
HWY_INLINE V exp_in_range(D d, V x) {
  // x log2(e) + 1.5 * 2^23 + 127: rounded to a whole number n, whose low bits are the exponent of
  // 2^n. Conversions to integers, which care for overflow, take several instructions.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  const V value = Near::of(d, r);
  const hn::RebindToUnsigned<D> du;
  return hn::Mul(value, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
}

// 1 / x within two units in the last place, for x in [1, 2^126): a division keeps the vector units
// waiting for as long as ten of these instructions take.
template <class D, class V>
HWY_INLINE V reciprocal(D d, V x) {
  const V guess = hn::ApproximateReciprocal(x);
  const V better = hn::MulAdd(guess, hn::NegMulAdd(x, guess, hn::Set(d, 1.0f)), guess);
  // AVX-512 guesses 14 bits, the other levels 11.
  if constexpr (HWY_MAX_BYTES == 64) return better;
  return hn::MulAdd(better, hn::NegMulAdd(x, better, hn::Set(d, 1.0f)), better);
}

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  // Beyond these the result is 0 or infinity; the scale is applied in two halves so that both
  // subnormal results and the top binade are reached.
  x = clamp(d, x, -104.0f, 89.0f);
  const V magic = hn::Set(d, 12582912.0f);
  const V n = hn::Sub(hn::MulAdd(x, hn::Set(d, 1.44269504f), magic), magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  const V value = ExpNearZero::of(d, r);
  const V half = hn::Floor(hn::Mul(n, hn::Set(d, 0.5f)));
  return hn::Mul(hn::Mul(value, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
}

// Of positive finite normal values.
template <class D, class V>
HWY_INLINE V log_positive(D d, V x) {
  const hn::RebindToSigned<D> di;
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
  const auto bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3f3504f3));
  const V e = hn::ConvertTo(d, hn::ShiftRight<23>(bits));
  const V m =
      hn::BitCast(d, hn::Add(hn::And(bits, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3)));
  const V f = hn::Sub(m, hn::Set(d, 1.0f));
  const V p = horner(d, f, 0.33333313f, -0.2500001f, 0.20002119f, -0.16667986f, 0.1421952f,
                     -0.12405755f, 0.11888601f, -0.11674809f, 0.0674455f);
  const V square = hn::Mul(f, f);
  V tail = hn::MulAdd(hn::Mul(square, f), p, hn::Mul(e, hn::Set(d, 1.42860677e-6f)));
  tail = hn::NegMulAdd(hn::Set(d, 0.5f), square, tail);
  return hn::MulAdd(e, hn::Set(d, 0.693145752f), hn::Add(f, tail));
}

// Of everything: log(0) is -infinity, of a negative value NaN, of infinity infinity.
template <class D, class V>
HWY_INLINE V log(D d, V x) {
  // Subnormal values are scaled by 2^23 first.
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const V scaled = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  V value = log_positive(d, scaled);
  value = hn::IfThenElse(tiny, hn::Sub(value, hn::Set(d, 15.9423847f)), value);
  value = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -HUGE_VALF), value);
  value = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::NaN(d), value);
  // Infinity and NaN are their own.
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, HUGE_VALF)), value, x);
}

template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  // Below -87 the true value is subnormal; here it stays at exp(-87), far below any rounding.
  const V one = hn::Set(d, 1.0f);
  return reciprocal(d, hn::Add(one, exp_in_range(d, clamp(d, hn::Neg(x), -87.0f, 87.0f))));
}

// x * sigmoid(x), 3 ulp like sigmoid, by two thirds of its operations: the exponent is rounded by
// adding 1.5 * 2^23, whose low bits then are the whole part, ready to be added to the exponent of
// 2^f. Without fused operations the remainder f would be too coarse.
template <class D, class V>
HWY_INLINE V silu(D d, V x) {
#if HWY_TARGET <= HWY_AVX2
  const hn::RebindToSigned<D> di;
  const V limited = clamp(d, x, -87.0f, 87.0f);
  // -log2(e) in two parts.
  const V high = hn::Set(d, -1.44269502f), low = hn::Set(d, -1.92596299e-8f);
  const V magic = hn::Set(d, 12582912.0f);
  const V whole = hn::MulAdd(limited, high, magic);
  const V f = hn::MulAdd(limited, low, hn::MulSub(limited, high, hn::Sub(whole, magic)));
  const V p = horner(d, f, 1.0f, 0.693147182f, 0.240226477f, 0.0555032901f, 0.00961837359f,
                     0.0013399875f, 0.000153706904f);
  const auto bits = hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::BitCast(di, whole)));
  return hn::Mul(x, reciprocal(d, hn::Add(hn::Set(d, 1.0f), hn::BitCast(d, bits))));
#else
  return hn::Mul(x, sigmoid(d, x));
#endif
}

template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V square = hn::Mul(x, x);
  const V p = horner(d, square, -0.3333333f, 0.13333206f, -0.053946763f, 0.0217007f, -0.008177395f,
                     0.0021429588f);
  const V small = hn::MulAdd(hn::Mul(square, magnitude), p, magnitude);
  const V one = hn::Set(d, 1.0f);
  // 1 - 2 / (exp(2|x|) + 1); beyond 10 this is 1 in f32.
  const V e = exp_in_range(d, hn::Min(hn::Set(d, 20.0f), hn::Add(magnitude, magnitude)));
  const V large = hn::NegMulAdd(hn::Set(d, 2.0f), reciprocal(d, hn::Add(e, one)), one);
  const V value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625f)), small, large);
  return hn::CopySign(value, x);
}

// tanh by a quotient of polynomials: 6 ulp, where results are not subnormal.
template <class D, class V>
HWY_INLINE V tanh_ratio(D d, V x) {
  x = clamp(d, x, -9.0f, 9.0f);
  const V square = hn::Mul(x, x);
  const V p = horner(d, square, 4.89352455891786e-03f, 6.37261928875436e-04f, 1.48572235717979e-05f,
                     5.12229709037114e-08f, -8.60467152213735e-11f, 2.00018790482477e-13f,
                     -2.76076847742355e-16f);
  const V q = horner(d, square, 4.89352518554385e-03f, 2.26843463243900e-03f, 1.18534705686654e-04f,
                     1.19825839466702e-06f);
  return hn::Div(hn::Mul(x, p), q);
}

// x * sigmoid(x) by a quotient of polynomials: an error of 1e-7 of x, not of the result.
template <class D, class V>
HWY_INLINE V silu_ratio(D d, V x) {
  const V limited = clamp(d, x, -18.0f, 18.0f);
  const V square = hn::Mul(limited, limited);
  const V p = horner(d, square, 2.48287947061529e-01f, 8.51377133304701e-03f, 6.08574864600143e-05f,
                     1.15627324459942e-07f, 4.37031012579801e-11f);
  const V q = horner(d, square, 9.93151921023180e-01f, 1.16817656904453e-01f, 1.70198817374094e-03f,
                     6.29106785017040e-06f, 5.76102136993427e-09f, 6.10247389755681e-13f);
  const V ratio = hn::Div(hn::Mul(limited, p), q);
  return hn::Mul(x, clamp(d, hn::Add(ratio, hn::Set(d, 0.5f)), 0.0f, 1.0f));
}

// sin(x), and cos(x) with a shift of 1, for |x| below 10000: 2 ulp of 1. Nothing is fused.
template <class D, class V>
HWY_INLINE V sine_quarter(D d, V x, int shift) {
  const hn::RebindToSigned<D> di;
  const auto mad = [=](V a, V b, float c)
                       HWY_ATTR { return hn::Add(hn::Mul(a, b), hn::Set(d, c)); };
  // |x| = n pi/2 + r, pi/2 in parts with so few bits that n times each is exact.
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::Add(hn::Mul(hn::Abs(x), hn::Set(d, 0.636619746685028076f)), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::Abs(x);
  for (const float part :
       {-1.5703125f, -4.83989715576171875e-4f, 1.62865035235881805e-7f, 5.56443155441677106e-11f})
    r = hn::Add(hn::Mul(n, hn::Set(d, part)), r);
  const V square = hn::Mul(r, r);
  V even = mad(hn::Set(d, 2.43722661252832040e-5f), square, -1.38865201734006405e-3f);
  even = mad(mad(mad(even, square, 4.1666619479656219e-2f), square, -0.5f), square, 1.0f);
  V odd = mad(hn::Set(d, -1.95923411408370290e-4f), square, 8.33268736556168517e-3f);
  odd = hn::Mul(mad(odd, square, -1.66666620398229826e-1f), square);
  odd = hn::Add(hn::Mul(odd, r), r);
  const auto quarters = hn::Add(hn::BitCast(di, shifted), hn::Set(di, shift));
  const auto is_odd = hn::MaskFromVec(hn::BitCast(d, hn::Neg(hn::And(quarters, hn::Set(di, 1)))));
  V sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(quarters, hn::Set(di, 2))));
  if (shift == 0) sign = hn::Xor(sign, hn::And(x, hn::SignBit(d)));
  return hn::Xor(hn::IfThenElse(is_odd, even, odd), sign);
}

template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  // Beyond 3.925 this is 1 in f32.
  const V magnitude = hn::Min(hn::Set(d, 3.925f), hn::Abs(x));
  const V square = hn::Mul(magnitude, magnitude);
  const V q = horner(d, square, 1.28379151e-1f, -3.76124859e-1f, 1.12818025e-1f, -2.67667342e-2f,
                     4.99339588e-3f, -5.99104969e-4f);
  const V small = hn::MulAdd(q, magnitude, magnitude);
  // 1 - exp(log(erfc)).
  const V l = horner(d, magnitude, 1.28717512e-1f, 6.34846687e-1f, 1.06777847e-1f, -2.42545605e-2f,
                     3.88393435e-3f, -3.83208680e-4f, 1.72948930e-5f);
  const V large = hn::Sub(hn::Set(d, 1.0f), exp_in_range<ExpNearZeroOfErf>(
                                                d, hn::Neg(hn::MulAdd(l, magnitude, magnitude))));
  const V value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0.921875f)), large, small);
  return hn::CopySign(value, x);
}

template <class D, class V>
HWY_INLINE V gelu_erf(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::Mul(half, hn::Add(erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), hn::Set(d, 1.0f)));
}

template <class D, class V>
HWY_INLINE V gelu_tanh(D d, V x) {
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V inner = hn::Mul(hn::Set(d, 0.79788456f), hn::MulAdd(hn::Set(d, 0.044715f), cube, x));
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, tanh(d, inner), half);
}

// x * (1/2 + t P(t^2)) with t = x clamped to 4: within 1.9e-4 of gelu_erf and 5.0e-4 of gelu_tanh.
// Beyond 4 the factor is 1 or 0 but for rounding.
template <class D, class V>
HWY_INLINE V gelu_near(D d, V x) {
  const V t = clamp(d, x, -4.0f, 4.0f);
  const V p = horner(d, hn::Mul(t, t), 0.397870064f, -0.0645541847f, 0.00876360107f,
                     -0.000812170852f, 4.77623362e-5f, -1.58875616e-6f, 2.25869368e-8f);
  return hn::Mul(x, hn::MulAdd(t, p, hn::Set(d, 0.5f)));
}

// max(x, 0) - |x| 2^P(|x|), the power being what the normal distribution has beyond |x|: within
// 1.2e-6 of gelu_erf, and 1e-4 of its value down to -4.5.
template <class D, class V>
HWY_INLINE V gelu_close(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V magnitude = hn::Abs(x);
  const V y =
      horner(d, hn::Min(hn::Set(d, 5.25f), magnitude), -1.00001526f, -1.15104103f, -0.459136575f,
             -0.0530591272f, 0.00792573765f, -0.000740462041f, 3.14951794e-5f);
  // As exp_in_range.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::Add(y, magic);
  const V p = horner(d, hn::Sub(y, hn::Sub(shifted, magic)), 0.999999261f, 0.693121815f,
                     0.240247448f, 0.0559178603f, 0.0095701020f);
  const V power = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
  return hn::NegMulAdd(magnitude, power, hn::Max(hn::Zero(d), x));
}

// log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)).
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = exp(d, hn::Neg(hn::Abs(x)));
  // log(1 + e) = log(u) * e / (u - 1) with u = 1 + e repairs the rounding of u.
  const V u = hn::Add(one, e);
  const V drop = hn::Sub(u, one);
  const V ratio = hn::Div(hn::Mul(log_positive(d, u), e), drop);
  const V tail = hn::IfThenElse(hn::Eq(drop, hn::Zero(d)), e, ratio);
  return hn::Add(hn::Max(hn::Zero(d), x), tail);
}

// Calls f(function of a vector) once with the activation's function, so that a loop is compiled for
// each and chooses none inside.
template <class D, class F>
HWY_INLINE void with_activation(D d, Activation activation, float first, float second, const F& f) {
  using V = hn::Vec<D>;
  switch (activation) {
    case Activation::none:
      return f([](V x) HWY_ATTR { return x; });
    case Activation::relu:
      return f([=](V x) HWY_ATTR { return hn::Max(hn::Zero(d), x); });
    case Activation::clip:
      return f([=](V x) HWY_ATTR { return clamp(d, x, first, second); });
    case Activation::leaky_relu:
      return f([=](V x) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, first)), x);
      });
    case Activation::elu:
      return f([=](V x) HWY_ATTR {
        const V negative = hn::Mul(hn::Set(d, first), hn::Sub(exp(d, x), hn::Set(d, 1.0f)));
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, x);
      });
    case Activation::sigmoid:
      return f([=](V x) HWY_ATTR { return sigmoid(d, x); });
    case Activation::tanh:
      return f([=](V x) HWY_ATTR { return tanh(d, x); });
    case Activation::silu:
      if (first == 1.0f) return f([=](V x) HWY_ATTR { return silu(d, x); });
      return f([=](V x) HWY_ATTR { return hn::Mul(x, sigmoid(d, hn::Mul(x, hn::Set(d, first)))); });
    case Activation::gelu_erf:
      return f([=](V x) HWY_ATTR { return gelu_erf(d, x); });
    case Activation::gelu_tanh:
      return f([=](V x) HWY_ATTR { return gelu_tanh(d, x); });
    case Activation::gelu_close:
      return f([=](V x) HWY_ATTR { return gelu_close(d, x); });
    case Activation::gelu_near:
      return f([=](V x) HWY_ATTR { return gelu_near(d, x); });
    case Activation::hard_sigmoid:
      return f([=](V x) HWY_ATTR {
        return clamp(d, hn::MulAdd(x, hn::Set(d, first), hn::Set(d, second)), 0.0f, 1.0f);
      });
    case Activation::hard_swish: {
      // A product with a rounded sixth would be wrong by the same 3e-8 in every result, which the
      // sums of what follows keep; its two parts have one sign, so that infinity stays what it is.
      // What rounding takes from x + 3 and from the product is added where nothing is cut off: it
      // was a fifth of the error of PP-OCR's detector.
      if (second != 0)
        return f([=](V x) HWY_ATTR {
          const V three = hn::Set(d, 3.0f), line = hn::Add(x, three);
          const V gate = clamp(d, line, 0.0f, 6.0f), product = hn::Mul(x, gate);
          const V lost =
              hn::MulAdd(x, hn::Sub(x, hn::Sub(line, three)), hn::MulSub(x, gate, product));
          const V rest = hn::Mul(hn::IfThenElseZero(hn::Eq(gate, line), lost), hn::Set(d, first));
          return hn::MulAdd(product, hn::Set(d, first),
                            hn::MulAdd(product, hn::Set(d, second), rest));
        });
      const float slope = first != 0 ? first : 1.0f / 6;
      return f([=](V x) HWY_ATTR {
        const V line = hn::MulAdd(x, hn::Set(d, slope), hn::Set(d, 0.5f));
        return hn::Mul(x, clamp(d, line, 0.0f, 1.0f));
      });
    }
    case Activation::softplus:
      return f([=](V x) HWY_ATTR { return softplus(d, x); });
    case Activation::exp:
      return f([=](V x) HWY_ATTR { return exp(d, x); });
    case Activation::tanh_ratio:
      return f([=](V x) HWY_ATTR { return tanh_ratio(d, x); });
    case Activation::silu_ratio:
      return f([=](V x) HWY_ATTR { return silu_ratio(d, x); });
  }
}

// values = activation(values), any count.
HWY_INLINE void activate_run(Activation activation, float first, float second, float* values,
                             size_t count) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  with_activation(d, activation, first, second, [&](auto function) HWY_ATTR {
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      hn::StoreU(function(hn::LoadU(d, values + i)), d, values + i);
    if (i < count) {
      HWY_ALIGN float rest[kLanes] = {};
      for (size_t j = i; j < count; ++j) rest[j - i] = values[j];
      hn::Store(function(hn::Load(d, rest)), d, rest);
      for (size_t j = i; j < count; ++j) values[j] = rest[j - i];
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
