// Group reductions: the tree of the ISA, a vector at a time.
//
// The values lie in thread order and are padded with the identity to a power of two n; then for
// half = n/2, n/4, ..., 1: v[i] = op(v[i], v[i + half]). Which threads ran when does not matter.
#include "codegen/function_emitter.h"

namespace hologram::codegen {

using isa::Opcode;
using llvm::BasicBlock;
using llvm::Value;

namespace {

Opcode element_operation(Opcode group) {
  switch (group) {
    case Opcode::group_add:
      return Opcode::add;
    case Opcode::group_mul:
      return Opcode::mul;
    case Opcode::group_min:
      return Opcode::min;
    default:
      return Opcode::max;
  }
}

// The bits of e with op(x, e) == x for every x: -0 for the sum of floats, since -0 + 0 is +0.
uint64_t identity(Opcode op, DType type) {
  const unsigned size = bits_of(type);
  const uint64_t ones = ~uint64_t{0} >> (64 - size);
  const uint64_t top = uint64_t{1} << (size - 1);
  if (is_float(type)) {
    constexpr auto pick = [](DType t, uint64_t f16, uint64_t bf16, uint64_t f32, uint64_t f64) {
      return t == DType::f16 ? f16 : t == DType::bf16 ? bf16 : t == DType::f32 ? f32 : f64;
    };
    const uint64_t infinity = pick(type, 0x7c00, 0x7f80, 0x7f800000, 0x7ff0000000000000);
    switch (op) {
      case Opcode::add:
        return top;
      case Opcode::mul:
        return pick(type, 0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000);
      case Opcode::min:
        return infinity;
      default:
        return infinity | top;
    }
  }
  switch (op) {
    case Opcode::add:
      return 0;
    case Opcode::mul:
      return 1;
    case Opcode::min:
      return is_signed_integer(type) ? top - 1 : ones;
    default:
      return is_signed_integer(type) ? top : 0;
  }
}

}  // namespace

// A vector of a power of two of values as one value.
Value* FunctionEmitter::halve(Opcode op, DType type, Value* value) {
  unsigned width = llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements() / 2;
  for (; width > 1; width /= 2) {
    llvm::SmallVector<int, 64> low, high;
    for (unsigned lane = 0; lane < width; ++lane)
      low.push_back(static_cast<int>(lane)), high.push_back(static_cast<int>(lane + width));
    value = kernel_.ops.binary(op, type, b.CreateShuffleVector(value, low),
                               b.CreateShuffleVector(value, high));
  }
  return kernel_.ops.binary(op, type, b.CreateExtractElement(value, uint64_t{0}),
                            b.CreateExtractElement(value, uint64_t{1}));
}

// All values are in one vector: nothing to copy, nothing to pad.
void FunctionEmitter::reduce_whole(const isa::Instruction& i, Opcode op) {
  LaneOps& ops = kernel_.ops;
  const unsigned bytes = static_cast<unsigned>(size_of(i.type));
  Value* values;
  if (kernel_.plan.storage[i.a.index] == Storage::block || kernel_.constants[i.a.index]) {
    values = ops.splat(read(i.a), kernel_.whole_block);
  } else {
    llvm::Type* const wide = LaneOps::with_lanes(ops.memory_type(i.type), kernel_.whole_block);
    Value* const from =
        kernel_.thread_memory(kernel_.plan.thread_offset[i.a.index], bytes, kernel_.i64(0));
    values = ops.from_memory(i.type, b.CreateAlignedLoad(wide, from, llvm::Align(bytes)));
  }
  write(i.dst, halve(op, i.type, values));
}

void FunctionEmitter::reduce(const isa::Instruction& i) {
  const Opcode op = element_operation(i.op);
  if (kernel_.whole_block) return reduce_whole(i, op);
  const unsigned bytes = static_cast<unsigned>(size_of(i.type));
  const llvm::Align align(bytes);
  LaneOps& ops = kernel_.ops;
  llvm::Type* const element = ops.register_type(i.type);
  const unsigned lanes = kernel_.target.vector_bits() / 8 / bytes;
  llvm::Type* const wide = llvm::FixedVectorType::get(element, lanes);
  Value* const step = kernel_.i64(lanes);
  Value* const threads = kernel_.block_threads;
  Value* const work = kernel_.thread_memory(kernel_.plan.reduction_offset, bytes, kernel_.i64(0));
  const auto work_at = [&](Value* index) { return b.CreateGEP(element, work, index); };

  // At least one vector, so that the end needs no loop.
  Value* const leading = b.CreateBinaryIntrinsic(
      llvm::Intrinsic::ctlz, b.CreateSub(threads, kernel_.i64(1)), b.getFalse());
  Value* const power = b.CreateShl(kernel_.i64(1), b.CreateSub(kernel_.i64(64), leading));
  Value* const count = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, power, step);

  // Copy and pad. What is read behind the last thread lies inside the scratch memory too.
  Value* const padding = ops.splat(ops.bits(i.type, identity(op, i.type)), lanes);
  const bool same =
      kernel_.plan.storage[i.a.index] == Storage::block || kernel_.constants[i.a.index];
  Value* const everywhere = same ? ops.splat(read(i.a), lanes) : nullptr;
  kernel_.count(kernel_.i64(0), count, step, "pad", [&](Value* t) {
    Value* values = everywhere;
    if (!same)
      values = b.CreateAlignedLoad(
          wide, kernel_.thread_memory(kernel_.plan.thread_offset[i.a.index], bytes, t), align);
    Value* const numbers =
        b.CreateAdd(ops.lane_numbers(b.getInt64Ty(), lanes), ops.splat(t, lanes));
    Value* const valid = b.CreateICmpULT(numbers, ops.splat(threads, lanes));
    b.CreateAlignedStore(b.CreateSelect(valid, values, padding), work_at(t), align);
  });

  // Halve until one vector is left.
  BasicBlock* const start = b.GetInsertBlock();
  BasicBlock* const head = kernel_.block_named("halve");
  BasicBlock* const body = kernel_.block_named("halve.body");
  BasicBlock* const end = kernel_.block_named("halve.end");
  kernel_.go_to(head);
  llvm::PHINode* const size = b.CreatePHI(b.getInt64Ty(), 2);
  size->addIncoming(count, start);
  b.CreateCondBr(b.CreateICmpUGT(size, step), body, end);
  b.SetInsertPoint(body);
  Value* const half = b.CreateLShr(size, 1);
  kernel_.count(kernel_.i64(0), half, step, "combine", [&](Value* t) {
    Value* const low = b.CreateAlignedLoad(wide, work_at(t), align);
    Value* const high = b.CreateAlignedLoad(wide, work_at(b.CreateAdd(t, half)), align);
    b.CreateAlignedStore(ops.binary(op, i.type, low, high), work_at(t), align);
  });
  size->addIncoming(half, b.GetInsertBlock());
  b.CreateBr(head);

  b.SetInsertPoint(end);
  write(i.dst, halve(op, i.type, b.CreateAlignedLoad(wide, work_at(kernel_.i64(0)), align)));
}

}  // namespace hologram::codegen
