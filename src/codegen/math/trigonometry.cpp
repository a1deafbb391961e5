// sin, cos, tan and their inverses.
//
// x = k pi/2 + r with |r| <= pi/4. Up to 2^20 pi/2 is taken in parts with so few bits that k times
// each is exact; beyond, a soft routine has enough bits of pi for every number there is.
#include <limits>
#include <optional>

#include "codegen/math/coefficients.h"
#include "codegen/math/number.h"
#include "codegen/math/soft.h"

namespace hologram::codegen::math {
namespace {

constexpr double kLargest = 0x1p20;

struct Angle {
  Number quarters;  // i64
  Number value;     // f64
  Number error;     // what value lacks; only for f64 results
};

// Numbers beyond kLargest, if there are any: a branch that is hardly ever taken.
Angle with_large(Number x, Number is_large, Angle angle) {
  llvm::IRBuilder<>& b = x.b();
  llvm::Function* const function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* const start = b.GetInsertBlock();
  auto* const large = llvm::BasicBlock::Create(b.getContext(), "large.angle", function);
  auto* const end = llvm::BasicBlock::Create(b.getContext(), "angle", function);
  b.CreateCondBr(x.ops->any(is_large.value), large, end);
  b.SetInsertPoint(large);
  const auto turn = [&](const char* routine) {
    return x.with(soft::call(*x.ops, routine, {x.value}, is_large.value));
  };
  const Number quarters = to_integer(turn("hologram_turn_quarters"));
  const Number value = turn("hologram_turn_angle");
  const Number error = turn("hologram_turn_error");
  const Angle mixed = {select(is_large, quarters, angle.quarters),
                       select(is_large, value, angle.value), select(is_large, error, angle.error)};
  llvm::BasicBlock* const computed = b.GetInsertBlock();
  b.CreateBr(end);
  b.SetInsertPoint(end);
  const auto merge = [&](Number usual, Number other) {
    llvm::PHINode* const phi = b.CreatePHI(usual.value->getType(), 2);
    phi->addIncoming(usual.value, start);
    phi->addIncoming(other.value, computed);
    return x.with(phi);
  };
  return {merge(angle.quarters, mixed.quarters), merge(angle.value, mixed.value),
          merge(angle.error, mixed.error)};
}

// `x` is f64. For an f32 result the first two parts of pi/2 are enough: no f32 below 2^20 lies
// closer than 2^-30 to a multiple of pi/2.
Angle reduce(Number x, bool for_f32) {
  const Number a = abs(x);
  const Number is_large = (a >= kLargest) & (a < std::numeric_limits<double>::infinity());
  const Number k = nearest(x * (1 / (kPi / 2)));
  // Infinity and NaN become NaN here, and large numbers something without meaning.
  const Number first = x - k * kHalfPi[0];
  Angle angle{to_integer(select(a < kLargest, k, 0.0)), first, first};
  if (for_f32) {
    angle.value = first - k * kHalfPi[1] - k * kHalfPi[2];
    angle.error = x.constant(0.0);
  } else {
    const Pair second = exact_sum(first, k * -kHalfPi[1]);
    const Pair third = exact_sum(second.value, k * -kHalfPi[2]);
    const Pair last = exact_sum(third.value, second.error + third.error - k * kHalfPi[3]);
    angle.value = last.value;
    angle.error = last.error;
  }
  return with_large(x, is_large, angle);
}

struct SinCos {
  Number sin, cos;
};

SinCos on_quarter(const Angle& angle, bool for_f32) {
  const Number r = for_f32 ? narrow(angle.value) : angle.value;
  const Number z = r * r;
  // 1 - z/2 with what it loses.
  const Number half = z * 0.5;
  const Number one = 1.0 - half;
  const Number lost = (1.0 - one) - half;
  if (for_f32)
    return {mad(polynomial(z, kSinF32) * z, r, r), one + mad(polynomial(z, kCosF32) * z, z, lost)};
  // sin(r + e) = sin(r) + e cos(r), cos(r + e) = cos(r) - e sin(r), to first order.
  const Number sine = r + mad(polynomial(z, kSinF64) * z, r, angle.error * one);
  const Number cosine = one + (mad(polynomial(z, kCosF64) * z, z, lost) - r * angle.error);
  return {sine, cosine};
}

// sin(x + shift pi/2).
Number sine(Number x, int64_t shift) {
  const bool for_f32 = x.is_f32();
  const Angle angle = reduce(for_f32 ? widen(x) : x, for_f32);
  const auto [s, c] = on_quarter(angle, for_f32);
  Number quarters = angle.quarters + angle.quarters.integer(shift);
  if (for_f32) quarters = x.with(x.b().CreateTrunc(quarters.value, bits(x).value->getType()));
  const Number odd = is_set(quarters & quarters.integer(1));
  const Number sign = (quarters & quarters.integer(2)) << (for_f32 ? 30 : 62);
  return from_bits(bits(select(odd, c, s)) ^ sign);
}

}  // namespace

Number sin(Number x) {
  // -0 and the smallest numbers are their own sine, which the reduction would round.
  return select(equal(x, 0.0), x, sine(x, 0));
}
Number cos(Number x) { return sine(x, 1); }

Number tan(Number x) {
  const Angle angle = reduce(x, false);
  const auto [s, c] = on_quarter(angle, false);
  const Number odd = is_set(angle.quarters & angle.quarters.integer(1));
  const Number result = select(odd, -c, s) / select(odd, s, c);
  return select(equal(x, 0.0), x, result);
}

Number atan(Number x) {
  const Number a = abs(x);
  // |x| > tan(3pi/8): pi/2 - atan(1/x); |x| > tan(pi/8): pi/4 + atan((x-1)/(x+1)).
  const Number far = a > 2.414213562373095;
  const Number middle = a > 0.4142135623730950;
  const Number numerator = select(far, a.constant(-1.0), select(middle, a - 1.0, a));
  const Number denominator = select(far, a, select(middle, a + 1.0, 1.0));
  const Number t = numerator / denominator;
  const Number z = t * t;
  const Number offset = select(far, a.constant(kPi / 2), select(middle, a.constant(kPi / 4), 0.0));
  constexpr double kHalfPiRest = 0x1.1a62633145c07p-54;  // what kPi / 2 lacks
  const Number rest =
      select(far, a.constant(kHalfPiRest), select(middle, a.constant(kHalfPiRest / 2), 0.0));
  const Number tail = mad(polynomial(z, kAtanF64) * z, t, rest);
  return with_sign_of(offset + (t + tail), x);
}

Number asin(Number x) {
  const Number root = sqrt((1.0 - x) * (x + 1.0));
  return atan(x / root);
}

Number acos(Number x) { return atan(sqrt((1.0 - x) / (x + 1.0))) * 2.0; }

}  // namespace hologram::codegen::math
