// Division: of integers without traps, and the remainder of floats.
#include <llvm/IR/Module.h>

#include "codegen/lane_ops.h"
#include "codegen/math/soft.h"

namespace hologram::codegen {

using isa::Opcode;
using llvm::Type;
using llvm::Value;

// x86 has no vector division of integers. Up to 32 bits the quotient of two floats with enough
// bits truncates to the exact integer quotient: the true quotient is at least 1/b away from the
// integer above it, farther than a rounding error of at most a/b/2^24 (16 bits in f32) or
// a/b/2^53 (32 bits in f64) can carry it.
Value* LaneOps::integer_division(Opcode op, DType type, Value* a, Value* divisor) {
  const bool is_signed = is_signed_integer(type);
  Value* const zero = constant_like(a, 0);
  Value* const one = constant_like(a, 1);
  Value* const by_zero = b.CreateICmpEQ(divisor, zero);
  trap_if(by_zero, isa::kTrapDivisionByZero);
  // The lowest integer divided by -1 does not fit and would trap: -1 is done by negation.
  Value* by_minus_one = nullptr;
  Value* unsafe = by_zero;
  if (is_signed) {
    by_minus_one = b.CreateICmpEQ(divisor, llvm::Constant::getAllOnesValue(a->getType()));
    unsafe = b.CreateOr(unsafe, by_minus_one);
  }
  Value* const safe = b.CreateSelect(unsafe, one, divisor);

  Value* quotient;
  if (lanes_of(a) > 1 && bits_of(type) <= 32) {
    Type* const floating = with_lanes(bits_of(type) <= 16 ? b.getFloatTy() : b.getDoubleTy(), a);
    const auto to_float = [&](Value* v) {
      return is_signed ? b.CreateSIToFP(v, floating) : b.CreateUIToFP(v, floating);
    };
    Value* const q = b.CreateFDiv(to_float(a), to_float(safe));
    quotient = is_signed ? b.CreateFPToSI(q, a->getType()) : b.CreateFPToUI(q, a->getType());
  } else {
    quotient = is_signed ? b.CreateSDiv(a, safe) : b.CreateUDiv(a, safe);
  }
  if (op == Opcode::div) {
    if (is_signed) quotient = b.CreateSelect(by_minus_one, b.CreateNeg(a), quotient);
    return b.CreateSelect(by_zero, zero, quotient);
  }
  Value* const remainder = b.CreateSub(a, b.CreateMul(quotient, safe));
  return b.CreateSelect(unsafe, zero, remainder);
}

Value* LaneOps::float_remainder(Value* a, Value* divisor) {
  Type* const wide = with_lanes(b.getDoubleTy(), a);
  const bool is_f32 = a->getType() != wide;
  if (is_f32) a = b.CreateFPExt(a, wide), divisor = b.CreateFPExt(divisor, wide);
  Value* const result = soft::call(*this, "hologram_fmod", {a, divisor});
  // Exact: a remainder of two floats is a float.
  return is_f32 ? b.CreateFPTrunc(result, with_lanes(b.getFloatTy(), a)) : result;
}

Value* LaneOps::fused(Value* a, Value* c, Value* d) {
  if (target_.has_fma()) return b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, c, d});
  if (a->getType()->getScalarType()->isDoubleTy())
    return soft::call(*this, "hologram_fma", {a, c, d});
  // The product of two f32 is exact in f64. Rounding the sum to odd keeps what decides how it
  // rounds to f32: two roundings then act as one.
  Type* const wide = with_lanes(b.getDoubleTy(), a);
  Type* const integer = with_lanes(b.getInt64Ty(), a);
  Value* const p = b.CreateFMul(b.CreateFPExt(a, wide), b.CreateFPExt(c, wide));
  Value* const addend = b.CreateFPExt(d, wide);
  Value* const sum = b.CreateFAdd(p, addend);
  Value* const back = b.CreateFSub(sum, p);
  Value* const error =
      b.CreateFAdd(b.CreateFSub(p, b.CreateFSub(sum, back)), b.CreateFSub(addend, back));
  Value* const sum_bits = b.CreateBitCast(sum, integer);
  Value* const error_bits = b.CreateBitCast(error, integer);
  // Inexact, finite and even: step towards the error. The step is one more in magnitude when the
  // error has the sign of the sum, and one less when it has not.
  Value* const inexact = b.CreateFCmpONE(error, llvm::ConstantFP::get(wide, 0.0));
  Value* const even =
      b.CreateICmpEQ(b.CreateAnd(sum_bits, constant_like(sum_bits, 1)), constant_like(sum_bits, 0));
  Value* const outwards =
      b.CreateICmpSGE(b.CreateXor(sum_bits, error_bits), constant_like(sum_bits, 0));
  Value* const step =
      b.CreateSelect(outwards, constant_like(sum_bits, 1), constant_like(sum_bits, ~uint64_t{0}));
  Value* const odd =
      b.CreateSelect(b.CreateAnd(inexact, even), b.CreateAdd(sum_bits, step), sum_bits);
  return b.CreateFPTrunc(b.CreateBitCast(odd, wide), a->getType());
}

}  // namespace hologram::codegen
