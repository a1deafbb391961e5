// Atomics of the lane emitter: one lane after the other.
#include "codegen/lane_emitter.h"
#include "isa/fields.h"

namespace hologram::codegen {

using isa::Instruction;
using isa::Opcode;
using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;
using llvm::Value;

namespace {

// The operation as if on global memory.
Opcode global_form(Opcode op) {
  if (!isa::is_shared_access(op)) return op;
  constexpr int kDistance =
      static_cast<int>(Opcode::atomic_add_shared) - static_cast<int>(Opcode::atomic_add);
  return static_cast<Opcode>(static_cast<int>(op) - kDistance);
}

Opcode plain_operation(Opcode atomic) {
  switch (atomic) {
    case Opcode::atomic_add:
      return Opcode::add;
    case Opcode::atomic_min:
      return Opcode::min;
    default:
      return Opcode::max;
  }
}

}  // namespace

// The old element. Blocks run on several threads, so global memory needs real atomics; shared
// memory belongs to the one thread that runs the block.
Value* LaneEmitter::atomic_scalar(const Instruction& i, Value* address, Value* operand,
                                  Value* desired) {
  const Opcode op = global_form(i.op);
  llvm::Type* const element = ops_.memory_type(i.type);
  const llvm::Align align(size_of(i.type));
  if (isa::is_shared_access(i.op)) {
    Value* const old = b.CreateAlignedLoad(element, address, align);
    Value* next = operand;
    if (op == Opcode::atomic_cas)
      next = b.CreateSelect(b.CreateICmpEQ(old, operand), desired, old);
    else if (op != Opcode::atomic_exchange)
      next = ops_.binary(plain_operation(op), i.type, old, operand);
    b.CreateAlignedStore(next, address, align);
    return old;
  }
  constexpr auto kOrder = AtomicOrdering::SequentiallyConsistent;
  if (op == Opcode::atomic_cas) {
    Value* const pair = b.CreateAtomicCmpXchg(address, operand, desired, align, kOrder, kOrder);
    return b.CreateExtractValue(pair, 0);
  }
  if (op == Opcode::atomic_exchange)
    return b.CreateAtomicRMW(AtomicRMWInst::Xchg, address, operand, align, kOrder);
  if (is_integer(i.type)) {
    const bool is_signed = is_signed_integer(i.type);
    const auto operation = op == Opcode::atomic_add ? AtomicRMWInst::Add
                           : op == Opcode::atomic_min
                               ? (is_signed ? AtomicRMWInst::Min : AtomicRMWInst::UMin)
                               : (is_signed ? AtomicRMWInst::Max : AtomicRMWInst::UMax);
    return b.CreateAtomicRMW(operation, address, operand, align, kOrder);
  }
  // Floats: compute, and try again when another thread was faster.
  llvm::Type* const bits = b.getIntNTy(bits_of(i.type));
  Value* const first = b.CreateAlignedLoad(bits, address, align);
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const attempt = kernel_.block_named("attempt");
  llvm::BasicBlock* const done = kernel_.block_named("exchanged");
  kernel_.go_to(attempt);
  llvm::PHINode* const seen = b.CreatePHI(bits, 2);
  seen->addIncoming(first, before);
  Value* const old = b.CreateBitCast(seen, element);
  Value* const next = ops_.binary(plain_operation(op), i.type, old, operand);
  Value* const pair =
      b.CreateAtomicCmpXchg(address, seen, b.CreateBitCast(next, bits), align, kOrder, kOrder);
  seen->addIncoming(b.CreateExtractValue(pair, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(pair, 1), done, attempt);
  b.SetInsertPoint(done);
  return old;
}

LaneEmitter::Lanes LaneEmitter::atomic(const Instruction& i) {
  llvm::Type* const element = ops_.memory_type(i.type);
  const bool is_cas = isa::info(i.op).form == isa::Form::atomic_cas;
  if (lanes_ == 1) {
    Value* const address = b.CreateGEP(element, base_of(i), wide_index(i.a, read_scalar(i.a)));
    return {atomic_scalar(i, address, read_scalar(i.b), is_cas ? read_scalar(i.c) : nullptr)};
  }
  Value* const indices = spill(wide_index(i.a, read_vector(i.a)));
  Value* const operands = spill(read_vector(i.b));
  Value* const desired = is_cas ? spill(read_vector(i.c)) : nullptr;
  llvm::Type* const wide = LaneOps::with_lanes(element, lanes_);
  Value* const results = spill(llvm::Constant::getNullValue(wide));
  for_each_active_lane([&](Value* lane) {
    const auto of_lane = [&](llvm::Type* type, Value* slot) {
      return b.CreateLoad(type, b.CreateGEP(type, slot, lane));
    };
    Value* const address = b.CreateGEP(element, base_of(i), of_lane(b.getInt64Ty(), indices));
    Value* const old = atomic_scalar(i, address, of_lane(element, operands),
                                     desired ? of_lane(element, desired) : nullptr);
    b.CreateStore(old, b.CreateGEP(element, results, lane));
  });
  return {b.CreateLoad(wide, results), 0, true};
}

}  // namespace hologram::codegen
