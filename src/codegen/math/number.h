// Number: an LLVM value with operators, so that a formula reads as one. Scalars and vectors, f32,
// f64 and integers alike; a plain double next to a Number is a constant of its type.
//
// Internal to the layer (LLVM types).
#pragma once

#include <span>

#include "codegen/lane_ops.h"

namespace hologram::codegen::math {

struct Number {
  llvm::Value* value;
  LaneOps* ops;

  llvm::IRBuilder<>& b() const { return ops->b; }
  bool is_f32() const { return value->getType()->getScalarType()->isFloatTy(); }
  bool is_float() const { return value->getType()->isFPOrFPVectorTy(); }
  Number with(llvm::Value* v) const { return {v, ops}; }
  // Of this type.
  Number constant(double c) const { return with(llvm::ConstantFP::get(value->getType(), c)); }
  Number integer(int64_t c) const {
    return with(llvm::ConstantInt::get(value->getType(), static_cast<uint64_t>(c), true));
  }
};

// ---- arithmetic
inline Number operator+(Number a, Number b) {
  return a.with(a.is_float() ? a.b().CreateFAdd(a.value, b.value)
                             : a.b().CreateAdd(a.value, b.value));
}
inline Number operator-(Number a, Number b) {
  return a.with(a.is_float() ? a.b().CreateFSub(a.value, b.value)
                             : a.b().CreateSub(a.value, b.value));
}
inline Number operator*(Number a, Number b) { return a.with(a.b().CreateFMul(a.value, b.value)); }
inline Number operator/(Number a, Number b) { return a.with(a.b().CreateFDiv(a.value, b.value)); }
inline Number operator-(Number a) { return a.with(a.b().CreateFNeg(a.value)); }
inline Number operator+(Number a, double c) { return a + a.constant(c); }
inline Number operator-(Number a, double c) { return a - a.constant(c); }
inline Number operator-(double c, Number a) { return a.constant(c) - a; }
inline Number operator*(Number a, double c) { return a * a.constant(c); }
inline Number operator/(double c, Number a) { return a.constant(c) / a; }

// ---- bits and integers
inline Number operator&(Number a, Number b) { return a.with(a.b().CreateAnd(a.value, b.value)); }
inline Number operator|(Number a, Number b) { return a.with(a.b().CreateOr(a.value, b.value)); }
inline Number operator^(Number a, Number b) { return a.with(a.b().CreateXor(a.value, b.value)); }
inline Number operator!(Number a) { return a.with(a.b().CreateNot(a.value)); }
inline Number operator<<(Number a, unsigned n) { return a.with(a.b().CreateShl(a.value, n)); }
inline Number operator>>(Number a, unsigned n) { return a.with(a.b().CreateAShr(a.value, n)); }
inline Number bits(Number a) {
  llvm::Type* const type = a.b().getIntNTy(a.is_f32() ? 32 : 64);
  return a.with(a.b().CreateBitCast(a.value, LaneOps::with_lanes(type, a.value)));
}
inline Number from_bits(Number a) {
  llvm::Type* const type =
      a.value->getType()->getScalarSizeInBits() == 32 ? a.b().getFloatTy() : a.b().getDoubleTy();
  return a.with(a.b().CreateBitCast(a.value, LaneOps::with_lanes(type, a.value)));
}

// ---- comparisons give masks of i1; with NaN all but `unequal` and `is_nan` are false
inline Number operator<(Number a, Number b) {
  return a.with(a.b().CreateFCmpOLT(a.value, b.value));
}
inline Number operator>(Number a, Number b) {
  return a.with(a.b().CreateFCmpOGT(a.value, b.value));
}
inline Number operator<(Number a, double c) { return a < a.constant(c); }
inline Number operator>(Number a, double c) { return a > a.constant(c); }
inline Number operator>=(Number a, double c) {
  return a.with(a.b().CreateFCmpOGE(a.value, a.constant(c).value));
}
inline Number equal(Number a, Number b) { return a.with(a.b().CreateFCmpOEQ(a.value, b.value)); }
inline Number equal(Number a, double c) { return equal(a, a.constant(c)); }
inline Number is_nan(Number a) { return a.with(a.b().CreateFCmpUNO(a.value, a.value)); }
inline Number is_set(Number a) {  // of an integer: not zero
  return a.with(a.b().CreateICmpNE(a.value, a.integer(0).value));
}
inline Number select(Number mask, Number a, Number b) {
  return a.with(a.b().CreateSelect(mask.value, a.value, b.value));
}
inline Number select(Number mask, double c, Number b) { return select(mask, b.constant(c), b); }
inline Number select(Number mask, Number a, double c) { return select(mask, a, a.constant(c)); }

// ---- functions
inline Number call(llvm::Intrinsic::ID id, Number a) {
  return a.with(a.b().CreateUnaryIntrinsic(id, a.value));
}
inline Number abs(Number a) { return call(llvm::Intrinsic::fabs, a); }
inline Number sqrt(Number a) { return call(llvm::Intrinsic::sqrt, a); }
inline Number trunc(Number a) { return call(llvm::Intrinsic::trunc, a); }
inline Number nearest(Number a) { return call(llvm::Intrinsic::roundeven, a); }
inline Number with_sign_of(Number magnitude, Number sign) {
  return magnitude.with(
      magnitude.b().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.value, sign.value));
}
// One machine instruction; NaN in `a` stays.
inline Number at_least(Number a, double c) { return select(a < c, c, a); }
inline Number at_most(Number a, double c) { return select(a > c, c, a); }
// a * b + c, fused where the machine can: not for results that must not depend on it.
inline Number mad(Number a, Number b, Number c) {
  if (!a.ops->target().has_fma()) return a * b + c;
  return a.with(a.b().CreateIntrinsic(llvm::Intrinsic::fma, {a.value->getType()},
                                      {a.value, b.value, c.value}));
}
inline Number mad(Number a, double b, Number c) { return mad(a, a.constant(b), c); }
inline Number mad(Number a, Number b, double c) { return mad(a, b, a.constant(c)); }
inline Number polynomial(Number x, std::span<const double> coefficients) {
  Number sum = x.constant(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) sum = mad(sum, x, coefficients[i]);
  return sum;
}
inline Number widen(Number a) {
  return a.with(a.b().CreateFPExt(a.value, LaneOps::with_lanes(a.b().getDoubleTy(), a.value)));
}
inline Number narrow(Number a) {
  return a.with(a.b().CreateFPTrunc(a.value, LaneOps::with_lanes(a.b().getFloatTy(), a.value)));
}
// A whole number as an integer of as many bits; it must fit.
inline Number to_integer(Number a) {
  if (a.is_f32()) {
    llvm::Type* const type = LaneOps::with_lanes(a.b().getInt32Ty(), a.value);
    return a.with(a.b().CreateFPToSI(a.value, type));
  }
  // Adding 1.5 * 2^52 leaves the number in the low bits; there is no instruction before AVX-512.
  constexpr double kShift = 0x1.8p52;
  const Number shifted = bits(a + kShift);
  return shifted - bits(a.constant(kShift));
}
inline Number to_float(Number integer) {  // i32 to f32, i64 to f64; |integer| < 2^51
  llvm::Type* const type = integer.value->getType();
  if (type->getScalarSizeInBits() == 32)
    return integer.with(integer.b().CreateSIToFP(
        integer.value, LaneOps::with_lanes(integer.b().getFloatTy(), integer.value)));
  const Number shift = integer.with(llvm::ConstantInt::get(type, 0x4338000000000000));
  return from_bits(integer + shift) - 0x1.8p52;
}
// 2^n for an integer n in the range of normal exponents.
inline Number power_of_two(Number n) {
  const bool is_f32 = n.value->getType()->getScalarSizeInBits() == 32;
  return from_bits((n + n.integer(is_f32 ? 127 : 1023)) << (is_f32 ? 23 : 52));
}

// A value and what it lacks: value + error is more precise than either.
struct Pair {
  Number value;
  Number error;
};
Pair exact_sum(Number a, Number b);
Pair exact_product(Number a, Number b);

// ---- the functions that others are made of (f32 and f64)
Number exp(Number x);
Number exp_scaled(Number x, int exponent);  // exp(x) * 2^exponent, rounded once
Number exp_near_zero(Number r);             // |r| <= ln2/2
Number exp_normal(Number x);                // where the result is a normal number; not NaN
Number exp2(Number x);
Number expm1(Number x);  // f64
Number log(Number x);
Number log1p(Number x);          // f64
Number log2(Number x);           // f64
Number log10(Number x);          // f64
Number pow(Number x, Number y);  // f64
Number sin(Number x);
Number cos(Number x);
Number tan(Number x);   // f64
Number asin(Number x);  // f64
Number acos(Number x);  // f64
Number atan(Number x);  // f64
Number sinh(Number x);  // f64
Number cosh(Number x);  // f64
Number tanh(Number x);
Number asinh(Number x);  // f64
Number acosh(Number x);  // f64
Number atanh(Number x);  // f64
Number sigmoid(Number x);
Number erf(Number x);

}  // namespace hologram::codegen::math
