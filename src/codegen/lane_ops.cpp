#include "codegen/lane_ops.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "codegen/math/math.h"
#include "isa/class_tables.h"

namespace hologram::codegen {

using isa::Opcode;
using llvm::Type;
using llvm::Value;

Type* LaneOps::register_type(DType type) const {
  switch (type) {
    case DType::boolean:
      return b.getInt1Ty();
    case DType::f32:
      return b.getFloatTy();
    case DType::f64:
      return b.getDoubleTy();
    default:
      return b.getIntNTy(bits_of(type));
  }
}

Type* LaneOps::memory_type(DType type) const {
  return type == DType::boolean ? b.getInt8Ty() : register_type(type);
}

unsigned LaneOps::lanes_of(const Value* value) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return vector ? vector->getNumElements() : 1;
}

Type* LaneOps::with_lanes(Type* element, unsigned lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

Type* LaneOps::with_lanes(Type* element, const Value* like) {
  return with_lanes(element, lanes_of(like));
}

llvm::Constant* LaneOps::bits(DType type, uint64_t bits) const {
  Type* const t = register_type(type);
  if (t->isIntegerTy()) return llvm::ConstantInt::get(t, bits);
  const llvm::APInt pattern(bits_of(type), bits);
  return llvm::ConstantFP::get(t, llvm::APFloat(t->getFltSemantics(), pattern));
}

Value* LaneOps::constant_like(Value* like, uint64_t value) {
  return llvm::ConstantInt::get(like->getType(), value);
}

Value* LaneOps::splat(Value* scalar, unsigned lanes) {
  return lanes == 1 ? scalar : b.CreateVectorSplat(lanes, scalar);
}

Value* LaneOps::from_memory(DType type, Value* value) {
  return type == DType::boolean ? b.CreateICmpNE(value, constant_like(value, 0)) : value;
}

Value* LaneOps::to_memory(DType type, Value* value) {
  return type == DType::boolean ? b.CreateZExt(value, with_lanes(b.getInt8Ty(), value)) : value;
}

Value* LaneOps::any(Value* mask) { return lanes_of(mask) == 1 ? mask : b.CreateOrReduce(mask); }
Value* LaneOps::all(Value* mask) { return lanes_of(mask) == 1 ? mask : b.CreateAndReduce(mask); }

Value* LaneOps::lane_numbers(Type* element, unsigned lanes) {
  if (lanes == 1) return llvm::ConstantInt::get(element, 0);
  llvm::SmallVector<llvm::Constant*, 64> numbers;
  for (unsigned i = 0; i < lanes; ++i) numbers.push_back(llvm::ConstantInt::get(element, i));
  return llvm::ConstantVector::get(numbers);
}

void LaneOps::trap_if(Value* condition, isa::TrapCode code) {
  if (active && lanes_of(condition) > 1) condition = b.CreateAnd(condition, active);
  Value* const old = b.CreateLoad(b.getInt32Ty(), trap_);
  b.CreateStore(b.CreateSelect(any(condition), b.getInt32(code), old), trap_);
}

Value* LaneOps::widen(DType type, Value* value) {
  if (type == DType::f16) return half_to_float(value);
  if (type == DType::bf16) return bfloat_to_float(value);
  return value;
}

Value* LaneOps::narrow(DType type, Value* value) {
  if (type == DType::f16) return float_to_half(value);
  if (type == DType::bf16) return float_to_bfloat(value);
  return value;
}

Value* LaneOps::unary(Opcode op, DType type, Value* a) {
  if (op == Opcode::bit_not) return b.CreateNot(a);
  if (op == Opcode::class_of || op == Opcode::class_mirror) return class_lookup(op, a, nullptr);
  if (is_integer(type)) {
    Value* const negative = b.CreateNeg(a);
    if (op == Opcode::neg) return negative;
    return b.CreateSelect(b.CreateICmpSLT(a, constant_like(a, 0)), negative, a);  // abs
  }
  if (op == Opcode::neg || op == Opcode::abs) {
    // Bit operations: exact for every type, and a NaN stays the one it was.
    Type* const integer = with_lanes(b.getIntNTy(bits_of(type)), a);
    Value* const pattern = b.CreateBitCast(a, integer);
    const uint64_t sign = uint64_t{1} << (bits_of(type) - 1);
    Value* const result = op == Opcode::neg
                              ? b.CreateXor(pattern, llvm::ConstantInt::get(integer, sign))
                              : b.CreateAnd(pattern, llvm::ConstantInt::get(integer, sign - 1));
    return b.CreateBitCast(result, a->getType());
  }
  return narrow(type, float_unary(op, widen(type, a)));
}

Value* LaneOps::float_unary(Opcode op, Value* a) {
  switch (op) {
    case Opcode::sqrt:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
    case Opcode::floor:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a);
    case Opcode::ceil:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, a);
    case Opcode::trunc:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, a);
    case Opcode::round:
      return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, a);
    default:
      return math::unary(*this, op, a);
  }
}

Value* LaneOps::binary(Opcode op, DType type, Value* a, Value* c) {
  switch (op) {
    case Opcode::bit_and:
      return b.CreateAnd(a, c);
    case Opcode::bit_or:
      return b.CreateOr(a, c);
    case Opcode::bit_xor:
      return b.CreateXor(a, c);
    case Opcode::class_neighbour:
      return class_lookup(op, a, c);
    default:
      break;
  }
  if (is_float(type)) return narrow(type, float_binary(op, widen(type, a), widen(type, c)));
  const bool is_signed = is_signed_integer(type);
  switch (op) {
    case Opcode::add:
      return b.CreateAdd(a, c);
    case Opcode::sub:
      return b.CreateSub(a, c);
    case Opcode::mul:
      return b.CreateMul(a, c);
    case Opcode::min:
      return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a,
                                     c);
    case Opcode::max:
      return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a,
                                     c);
    default:
      return integer_division(op, type, a, c);  // div, rem
  }
}

Value* LaneOps::float_binary(Opcode op, Value* a, Value* c) {
  switch (op) {
    case Opcode::add:
      return b.CreateFAdd(a, c);
    case Opcode::sub:
      return b.CreateFSub(a, c);
    case Opcode::mul:
      return b.CreateFMul(a, c);
    case Opcode::div:
      return b.CreateFDiv(a, c);
    case Opcode::min:
    case Opcode::max:
      return float_extreme(op, a, c);
    case Opcode::rem:
      return float_remainder(a, c);
    default:
      return math::pow(*this, a, c);
  }
}

// IEEE 754-2019's minimum and maximum. x86 returns the second operand when either is NaN or both
// are zeros; what remains is to let a NaN in the first through and to combine the signs of zeros.
// (LLVM's own llvm.minimum is not used: LLVM 19 loses the NaN of minimum(x, 0 / x) in f16.)
Value* LaneOps::float_extreme(Opcode op, Value* a, Value* c) {
  const bool is_min = op == Opcode::min;
  if (llvm::isa<llvm::Constant>(c)) std::swap(a, c);
  const auto* const constant = llvm::dyn_cast<llvm::Constant>(a);
  const auto* const splat = llvm::dyn_cast_if_present<llvm::ConstantFP>(
      !constant                    ? nullptr
      : a->getType()->isVectorTy() ? constant->getSplatValue()
                                   : constant);
  Value* result = b.CreateSelect(is_min ? b.CreateFCmpOLT(a, c) : b.CreateFCmpOGT(a, c), a, c);
  if (splat && !splat->isZero() && !splat->isNaN()) return result;
  if (splat && splat->isExactlyValue(0.0) && !is_min)  // relu: -0 + 0 is +0
    return b.CreateFAdd(result, a);
  // Both ways round: the results differ where one is not a number or both are zeros, and their bits
  // together are then the answer. No comparison has to be waited for.
  Value* const other = b.CreateSelect(is_min ? b.CreateFCmpOLT(c, a) : b.CreateFCmpOGT(c, a), c, a);
  Type* const integer = with_lanes(b.getIntNTy(a->getType()->getScalarSizeInBits()), a);
  Value* const x = b.CreateBitCast(result, integer);
  Value* const y = b.CreateBitCast(other, integer);
  Value* bits = b.CreateOr(x, y);
  if (!is_min) {  // a minus only where both have one
    Value* const sign = constant_like(x, uint64_t{1} << (a->getType()->getScalarSizeInBits() - 1));
    bits = b.CreateOr(b.CreateAnd(bits, b.CreateNot(sign)), b.CreateAnd(x, y));
  }
  return b.CreateBitCast(bits, a->getType());
}

Value* LaneOps::ternary(Opcode op, DType type, Value* a, Value* c, Value* d) {
  if (!is_float(type)) return b.CreateAdd(b.CreateMul(a, c), d);  // mad
  if (op == Opcode::mad) return binary(Opcode::add, type, binary(Opcode::mul, type, a, c), d);
  return narrow(type, fused(widen(type, a), widen(type, c), widen(type, d)));
}

Value* LaneOps::shift(Opcode op, DType type, Value* a, Value* amount) {
  // LLVM leaves a shift by all bits undefined; taking the amount modulo the bits does not.
  amount = b.CreateZExtOrTrunc(b.CreateAnd(amount, constant_like(amount, bits_of(type) - 1)),
                               a->getType());
  if (op == Opcode::shl) return b.CreateShl(a, amount);
  return is_signed_integer(type) ? b.CreateAShr(a, amount) : b.CreateLShr(a, amount);
}

Value* LaneOps::compare(Opcode op, DType type, Value* a, Value* c) {
  using P = llvm::CmpInst::Predicate;
  const unsigned which = static_cast<unsigned>(op) - static_cast<unsigned>(Opcode::eq);
  if (is_float(type)) {
    constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT,
                            P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
    return b.CreateFCmp(kFloat[which], widen(type, a), widen(type, c));
  }
  constexpr P kSigned[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT,
                           P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  constexpr P kUnsigned[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_ULT,
                             P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  return b.CreateICmp(is_signed_integer(type) ? kSigned[which] : kUnsigned[which], a, c);
}

Value* LaneOps::bitcast(DType to, DType from, Value* a) {
  (void)from;
  return b.CreateBitCast(a, with_lanes(register_type(to), a));
}

// A table in the read-only data of the code, looked up lane by lane.
Value* LaneOps::class_lookup(Opcode op, Value* a, Value* number) {
  llvm::ArrayRef<uint8_t> table(isa::kClassOf);
  const char* name = "class_of";
  if (op == Opcode::class_mirror) table = isa::kClassMirror, name = "class_mirror";
  if (op == Opcode::class_neighbour) table = isa::kClassNeighbours, name = "class_neighbours";
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  llvm::GlobalVariable* global = module.getNamedGlobal(name);
  if (!global) {
    llvm::Constant* const data = llvm::ConstantDataArray::get(b.getContext(), table);
    global = new llvm::GlobalVariable(module, data->getType(), true,
                                      llvm::GlobalValue::PrivateLinkage, data, name);
  }
  Value* index = b.CreateZExt(a, with_lanes(b.getInt64Ty(), a));
  if (number) {
    const auto at_most = [&](Value* v, uint64_t limit) {
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, v, constant_like(v, limit));
    };
    Value* const n = b.CreateZExt(number, index->getType());
    index = b.CreateAdd(b.CreateShl(at_most(index, 96), 3), at_most(n, 7));
  }
  Value* const address = b.CreateGEP(b.getInt8Ty(), global, index);
  if (lanes_of(a) == 1) return b.CreateAlignedLoad(b.getInt8Ty(), address, llvm::Align(1));
  return b.CreateMaskedGather(a->getType(), address, llvm::Align(1));
}

}  // namespace hologram::codegen
