// Elementary functions on vectors of f32, for the code of one CPU level.
//
// Largest errors over all of f32, measured by math_test.cpp on every level: exp 1.5 ulp, log 2 ulp,
// tanh 3 ulp, erf 3 ulp, sigmoid 3 ulp. NaN gives NaN, overflow gives infinity, underflow is
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

// exp without the care for subnormal results and infinity: x in [-87, 88].
template <class D, class V>
HWY_INLINE V exp_in_range(D d, V x) {
  // x log2(e) + 1.5 * 2^23 + 127: rounded to a whole number n, whose low bits are the exponent of
  // 2^n. Conversions to integers, which care for overflow, take several instructions.
  const V magic = hn::Set(d, 12582912.0f + 127.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  const V p =
      horner(d, r, 0.5f, 0.16666666f, 0.041666295f, 0.008333498f, 0.0013944759f, 0.00019790248f);
  const V value = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
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
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145752f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6f), r);
  const V p =
      horner(d, r, 0.5f, 0.16666666f, 0.041666295f, 0.008333498f, 0.0013944759f, 0.00019790248f);
  const V value = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
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

template <class D, class V>
HWY_INLINE V erf(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V square = hn::Mul(x, x);
  const V q = horner(d, square, 0.12837917f, -0.37612638f, 0.11283782f, -0.0268654f, 0.0052209455f,
                     -0.0008482829f, 0.000112569476f, -9.641515e-06f);
  const V small = hn::MulAdd(magnitude, q, magnitude);
  // 1 - exp(log(erfc)); erfc(4) is below half an ulp of 1.
  const V t = hn::Min(hn::Set(d, 4.0f), magnitude);
  const V l = horner(d, t, 0.00018804023f, -1.1295785f, -0.6332199f, -0.10841858f, 0.025208257f,
                     -0.004204562f, 0.00044133636f, -2.168685e-05f);
  const V large = hn::Sub(hn::Set(d, 1.0f), exp_in_range(d, l));
  const V value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 1.0f)), small, large);
  return hn::CopySign(value, x);
}

template <class D, class V>
HWY_INLINE V gelu_erf(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, erf(d, hn::Mul(x, hn::Set(d, 0.70710678f))), half);
}

template <class D, class V>
HWY_INLINE V gelu_tanh(D d, V x) {
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V inner = hn::Mul(hn::Set(d, 0.79788456f), hn::MulAdd(hn::Set(d, 0.044715f), cube, x));
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, tanh(d, inner), half);
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
    case Activation::hard_sigmoid:
      return f([=](V x) HWY_ATTR {
        return clamp(d, hn::MulAdd(x, hn::Set(d, first), hn::Set(d, second)), 0.0f, 1.0f);
      });
    case Activation::hard_swish: {
      // A product with a rounded sixth would be wrong by the same 3e-8 in every result, which the
      // sums of what follows keep; its two parts have one sign, so that infinity stays what it is.
      if (second != 0)
        return f([=](V x) HWY_ATTR {
          const V gate = clamp(d, hn::Add(x, hn::Set(d, 3.0f)), 0.0f, 6.0f);
          const V product = hn::Mul(x, gate);
          return hn::MulAdd(product, hn::Set(d, first), hn::Mul(product, hn::Set(d, second)));
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
