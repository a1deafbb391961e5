// What a block does together: control flow around its segments.
#include "codegen/function_emitter.h"
#include "isa/fields.h"

namespace hologram::codegen {

using isa::Instruction;
using isa::Opcode;
using llvm::BasicBlock;
using llvm::Value;

Value* FunctionEmitter::read(isa::Register r) {
  if (const Instruction* const constant = kernel_.constants[r.index])
    return kernel_.ops.bits(constant->type, constant->immediate);
  llvm::AllocaInst* const from = kernel_.block_slots[r.index];
  return b.CreateLoad(from->getAllocatedType(), from);
}

// A register that also holds different values in different threads elsewhere is kept a thread.
void FunctionEmitter::write(isa::Register r, Value* value) {
  if (kernel_.plan.storage[r.index] == Storage::block) {
    b.CreateStore(value, kernel_.block_slots[r.index]);
    return;
  }
  const DType type = kernel_.program.registers[r.index];
  const unsigned bytes = static_cast<unsigned>(size_of(type));
  Value* const stored = kernel_.ops.to_memory(type, value);
  if (kernel_.whole_block) {
    b.CreateAlignedStore(
        kernel_.ops.splat(stored, kernel_.whole_block),
        kernel_.thread_memory(kernel_.plan.thread_offset[r.index], bytes, kernel_.i64(0)),
        llvm::Align(bytes));
    return;
  }
  kernel_.count(kernel_.i64(0), kernel_.block_threads, kernel_.i64(1), "fill", [&](Value* t) {
    b.CreateAlignedStore(stored,
                         kernel_.thread_memory(kernel_.plan.thread_offset[r.index], bytes, t),
                         llvm::Align(bytes));
  });
}

void FunctionEmitter::start_alive() {
  llvm::Type* const bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 64);
  kernel_.count(kernel_.i64(0), kernel_.padded_threads, kernel_.i64(64), "start", [&](Value* t) {
    b.CreateAlignedStore(llvm::ConstantInt::get(bytes, 1),
                         kernel_.thread_memory(kernel_.plan.alive_offset, 1, t), llvm::Align(1));
  });
}

void FunctionEmitter::keep_new_values(const BlockStep& segment) {
  std::vector<bool> written(kernel_.program.registers.size(), false);
  for_each_instruction(kernel_.tree, kernel_.tree.regions[segment.region].statements, segment.first,
                       segment.last, [&](uint32_t index) {
                         const Instruction& i = kernel_.program.body[index];
                         if (isa::uses(i, isa::kFieldDst)) written[i.dst.index] = true;
                       });
  for (uint32_t r = 0; r < written.size(); ++r) {
    if (!written[r] || kernel_.plan.storage[r] != Storage::block) continue;
    llvm::AllocaInst* const from = kernel_.next_block_slots[r];
    b.CreateStore(b.CreateLoad(from->getAllocatedType(), from), kernel_.block_slots[r]);
  }
}

void FunctionEmitter::steps(const std::vector<BlockStep>& steps) {
  for (const BlockStep& s : steps) step(s);
}

void FunctionEmitter::step(const BlockStep& s) {
  const Instruction& i = kernel_.program.body[s.instruction];
  switch (s.kind) {
    case BlockStep::Kind::segment:
      threads_of_block(s);
      keep_new_values(s);
      return;
    case BlockStep::Kind::group:
      return reduce(i);
    case BlockStep::Kind::for_:
      return counted_loop(s);
    case BlockStep::Kind::if_: {
      BasicBlock* const then = kernel_.block_named("block.then");
      BasicBlock* const otherwise = kernel_.block_named("block.else");
      BasicBlock* const end = kernel_.block_named("block.if.end");
      b.CreateCondBr(read(i.a), then, otherwise);
      b.SetInsertPoint(then);
      steps(s.body);
      b.CreateBr(end);
      b.SetInsertPoint(otherwise);
      steps(s.otherwise);
      kernel_.go_to(end);
      return;
    }
    case BlockStep::Kind::loop: {
      BasicBlock* const turn = kernel_.block_named("block.loop");
      loops_.push_back({turn, kernel_.block_named("block.loop.end")});
      kernel_.go_to(turn);
      steps(s.body);
      b.CreateBr(turn);
      b.SetInsertPoint(loops_.back().end);
      loops_.pop_back();
      return;
    }
    case BlockStep::Kind::jump:
      b.CreateBr(i.op == Opcode::return_  ? block_end_
                 : i.op == Opcode::break_ ? loops_.back().end
                                          : loops_.back().next);
      b.SetInsertPoint(kernel_.block_named("block.never"));
      return;
  }
}

void FunctionEmitter::counted_loop(const BlockStep& s) {
  const Instruction& i = kernel_.program.body[s.instruction];
  const bool is_signed = is_signed_integer(i.type);
  Value* const begin = read(i.a);
  Value* const end_value = read(i.b);
  Value* const step = read(i.c);
  Value* const zero = llvm::Constant::getNullValue(step->getType());
  Value* const no_step = b.CreateICmpEQ(step, zero);
  kernel_.ops.trap_if(no_step, isa::kTrapZeroStep);
  const auto before = [&](Value* x, Value* y) {
    if (!is_signed) return b.CreateICmpULT(x, y);
    return b.CreateSelect(b.CreateICmpSGT(step, zero), b.CreateICmpSLT(x, y),
                          b.CreateICmpSGT(x, y));
  };
  BasicBlock* const turn = kernel_.block_named("block.for");
  loops_.push_back({kernel_.block_named("block.for.next"), kernel_.block_named("block.for.end")});
  const BlockLoop loop = loops_.back();
  BasicBlock* const start = b.GetInsertBlock();
  b.CreateCondBr(b.CreateAnd(before(begin, end_value), b.CreateNot(no_step)), turn, loop.end);
  b.SetInsertPoint(turn);
  llvm::PHINode* const counter = b.CreatePHI(begin->getType(), 2);
  counter->addIncoming(begin, start);
  write(i.dst, counter);
  steps(s.body);
  kernel_.go_to(loop.next);
  Value* const next = b.CreateAdd(counter, step);
  counter->addIncoming(next, loop.next);
  // A counter that would leave its type has passed every end.
  b.CreateCondBr(b.CreateAnd(before(next, end_value), before(counter, next)), turn, loop.end);
  b.SetInsertPoint(loop.end);
  loops_.pop_back();
}

}  // namespace hologram::codegen
