// Conversions between the types of the ISA: every one rounds once, to nearest even.
#include <algorithm>
#include <cmath>

#include "codegen/lane_ops.h"

namespace hologram::codegen {

using llvm::Type;
using llvm::Value;

Value* LaneOps::convert(DType to, DType from, Value* a) {
  if (to == from) return a;
  if (to == DType::boolean) {
    if (!is_float(from)) return b.CreateICmpNE(a, constant_like(a, 0));
    Value* const wide = widen(from, a);
    return b.CreateFCmpUNE(wide, llvm::ConstantFP::get(wide->getType(), 0.0));
  }
  Type* const result = with_lanes(register_type(to), a);
  if (is_integer(to)) {
    if (is_float(from)) return float_to_integer(to, widen(from, a));
    return is_signed_integer(from) ? b.CreateSExtOrTrunc(a, result)
                                   : b.CreateZExtOrTrunc(a, result);
  }
  if (!is_float(from)) return integer_to_float(to, from, a);
  if (from == DType::f64) {
    if (to == DType::f32) return b.CreateFPTrunc(a, result);
    return narrow(to, double_to_float_odd(a));
  }
  Value* const single = widen(from, a);
  return to == DType::f64 ? b.CreateFPExt(single, result) : narrow(to, single);
}

// Saturating; NaN gives 0. Vectors by hand: LLVM takes a saturating conversion of one apart.
Value* LaneOps::float_to_integer(DType to, Value* value) {
  const bool is_signed = is_signed_integer(to);
  Type* const result = with_lanes(register_type(to), value);
  if (!result->isVectorTy())
    return b.CreateIntrinsic(is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                             {result, value->getType()}, {value});
  const int digits = static_cast<int>(bits_of(to)) - is_signed;
  const int precision = value->getType()->getScalarType()->isDoubleTy() ? 53 : 24;
  // The range as floats: `above` is the first past it, `highest` the last inside.
  const double above = std::ldexp(1.0, digits), lowest = is_signed ? -above : 0;
  const double highest = above - std::ldexp(1.0, std::max(0, digits - precision));
  const auto number = [&](double x) { return llvm::ConstantFP::get(value->getType(), x); };
  // NaN is not greater than anything: it becomes the lowest.
  Value* inside = b.CreateSelect(b.CreateFCmpOGT(value, number(lowest)), value, number(lowest));
  inside = b.CreateSelect(b.CreateFCmpOLT(inside, number(highest)), inside, number(highest));
  Value* whole = nullptr;
  if (bits_of(to) < 32)
    whole = b.CreateTrunc(b.CreateFPToSI(inside, with_lanes(b.getInt32Ty(), value)), result);
  else
    whole = is_signed ? b.CreateFPToSI(inside, result) : b.CreateFPToUI(inside, result);
  if (digits > precision)
    whole = b.CreateSelect(b.CreateFCmpOGE(value, number(above)),
                           constant_like(whole, ~uint64_t{0} >> (64 - digits)), whole);
  if (is_signed)
    whole = b.CreateSelect(b.CreateFCmpUNO(value, value), constant_like(whole, 0), whole);
  return whole;
}

// To f16 and bf16 through f32, as the ISA says.
Value* LaneOps::integer_to_float(DType to, DType from, Value* value) {
  Type* const type = with_lanes(to == DType::f64 ? b.getDoubleTy() : b.getFloatTy(), value);
  return narrow(
      to, is_signed_integer(from) ? b.CreateSIToFP(value, type) : b.CreateUIToFP(value, type));
}

// f64 to f32 by truncation with the last bit set when inexact (round to odd): a second rounding to
// fewer bits then gives what one rounding would have.
Value* LaneOps::double_to_float_odd(Value* value) {
  Value* const nearest = b.CreateFPTrunc(value, with_lanes(b.getFloatTy(), value));
  Value* const back = b.CreateFPExt(nearest, value->getType());
  Value* const pattern = b.CreateBitCast(nearest, with_lanes(b.getInt32Ty(), value));
  const auto magnitude = [&](Value* v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  Value* const too_far = b.CreateFCmpOGT(magnitude(back), magnitude(value));
  Value* const inexact = b.CreateFCmpONE(back, value);
  Value* const truncated = b.CreateSub(pattern, b.CreateZExt(too_far, pattern->getType()));
  Value* const odd = b.CreateOr(truncated, b.CreateZExt(inexact, pattern->getType()));
  return b.CreateBitCast(odd, nearest->getType());
}

Value* LaneOps::bfloat_to_float(Value* bits) {
  Value* const wide = b.CreateZExt(bits, with_lanes(b.getInt32Ty(), bits));
  return b.CreateBitCast(b.CreateShl(wide, 16), with_lanes(b.getFloatTy(), bits));
}

Value* LaneOps::float_to_bfloat(Value* value) {
  Value* const pattern = b.CreateBitCast(value, with_lanes(b.getInt32Ty(), value));
  Value* const high = b.CreateLShr(pattern, 16);
  Value* const last = b.CreateAnd(high, constant_like(high, 1));
  Value* const rounded =
      b.CreateLShr(b.CreateAdd(b.CreateAdd(pattern, constant_like(pattern, 0x7fff)), last), 16);
  Value* const quiet = b.CreateOr(high, constant_like(high, 0x40));
  Value* const result = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
  return b.CreateTrunc(result, with_lanes(b.getInt16Ty(), value));
}

Value* LaneOps::half_to_float(Value* bits) {
  Type* const single = with_lanes(b.getFloatTy(), bits);
  if (target_.has_f16_conversion())
    return b.CreateFPExt(b.CreateBitCast(bits, with_lanes(b.getHalfTy(), bits)), single);
  Type* const integer = with_lanes(b.getInt32Ty(), bits);
  Value* const wide = b.CreateZExt(bits, integer);
  Value* const sign = b.CreateShl(b.CreateAnd(wide, constant_like(wide, 0x8000)), 16);
  Value* const magnitude = b.CreateAnd(wide, constant_like(wide, 0x7fff));
  Value* const shifted = b.CreateShl(magnitude, 13);
  const auto plus = [&](Value* v, uint32_t exponents) {
    return b.CreateAdd(v, constant_like(v, uint64_t{exponents} << 23));
  };
  Value* const normal = plus(shifted, 127 - 15);
  Value* const special = plus(normal, 255 - 31 - (127 - 15));
  // A subnormal: put its bits below 2^-14 and take 2^-14 away again, which normalises.
  Value* const small =
      b.CreateBitCast(b.CreateFSub(b.CreateBitCast(plus(shifted, 127 - 14), single),
                                   llvm::ConstantFP::get(single, 0x1p-14)),
                      integer);
  Value* result =
      b.CreateSelect(b.CreateICmpULT(magnitude, constant_like(wide, 0x400)), small, normal);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, constant_like(wide, 0x7c00)), special, result);
  return b.CreateBitCast(b.CreateOr(result, sign), single);
}

Value* LaneOps::float_to_half(Value* value) {
  Type* const short_type = with_lanes(b.getInt16Ty(), value);
  if (target_.has_f16_conversion())
    return b.CreateBitCast(b.CreateFPTrunc(value, with_lanes(b.getHalfTy(), value)), short_type);
  Type* const integer = with_lanes(b.getInt32Ty(), value);
  Value* const pattern = b.CreateBitCast(value, integer);
  Value* const magnitude = b.CreateAnd(pattern, constant_like(pattern, 0x7fffffff));
  Value* const sign = b.CreateLShr(b.CreateXor(pattern, magnitude), 16);
  // Normal: the exponent rebased, the cut bits rounded by an addition that may carry into it.
  Value* const last = b.CreateAnd(b.CreateLShr(magnitude, 13), constant_like(magnitude, 1));
  Value* const rebased =
      b.CreateAdd(magnitude, constant_like(magnitude, 0xfff - (uint64_t{112} << 23)));
  Value* const normal = b.CreateLShr(b.CreateAdd(rebased, last), 13);
  // Subnormal: adding 1/2 makes the adder round at 2^-24.
  Value* const half = llvm::ConstantFP::get(value->getType(), 0.5);
  Value* const small = b.CreateSub(
      b.CreateBitCast(b.CreateFAdd(b.CreateBitCast(magnitude, value->getType()), half), integer),
      constant_like(magnitude, 0x3f000000));
  Value* result = b.CreateSelect(b.CreateICmpULT(magnitude, constant_like(magnitude, 0x38800000)),
                                 small, normal);
  const auto infinity = constant_like(magnitude, 0x7c00);
  result = b.CreateSelect(b.CreateICmpUGE(magnitude, constant_like(magnitude, 0x47800000)),
                          infinity, result);
  Value* const payload = b.CreateAnd(b.CreateLShr(magnitude, 13), constant_like(magnitude, 0x3ff));
  result = b.CreateSelect(b.CreateICmpUGT(magnitude, constant_like(magnitude, 0x7f800000)),
                          b.CreateOr(payload, constant_like(magnitude, 0x7e00)), result);
  return b.CreateTrunc(b.CreateOr(result, sign), short_type);
}

}  // namespace hologram::codegen
