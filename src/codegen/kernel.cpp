#include "codegen/kernel.h"

#include <llvm/IR/Function.h>

#include <cstddef>

#include "isa/fields.h"
#include "isa/native_abi.h"
#include "support/aligned.h"

namespace hologram::codegen {

using isa::NativeLaunch;
using llvm::Value;

Kernel::Kernel(const isa::Program& program, const Target& target, llvm::Function* function,
               llvm::IRBuilder<>& builder, unsigned whole_block, bool words)
    : program(program),
      target(target),
      function(function),
      b(builder),
      whole_block(whole_block),
      words(words),
      tree(build_control_tree(program)),
      uniformity(isa::analyse_uniformity(program)),
      plan(plan_block(program, tree, uniformity)),
      shared_layout(isa::shared_layout(program)),
      constants(find_constants(program)),
      parameters(program.parameters.size()),
      lengths(program.parameters.size()),
      trap(slot(builder.getInt32Ty(), "trap")),
      ops(builder, target, trap) {
  b.CreateStore(b.getInt32(0), trap);
  words ? take_words() : read_launch();

  block_slots.resize(program.registers.size());
  next_block_slots.resize(program.registers.size());
  for (uint32_t r = 0; r < program.registers.size(); ++r) {
    if (plan.storage[r] != Storage::block) continue;
    block_slots[r] = slot(ops.register_type(program.registers[r]));
    next_block_slots[r] = slot(ops.register_type(program.registers[r]));
  }

  if (program.shared.empty() && plan.thread_bytes == 0) return;
  block_threads = b.CreateMul(b.CreateMul(block[0], block[1]), block[2]);
  padded_threads = b.CreateAnd(b.CreateAdd(block_threads, i64(63)), i64(~uint64_t{63}));
  if (whole_block) {
    // A stack slot, of which nothing is left once it has been split into registers.
    const uint64_t bytes = uint64_t{align_up(whole_block, 64)} * plan.thread_bytes;
    llvm::AllocaInst* const values =
        slot(llvm::ArrayType::get(b.getInt8Ty(), bytes), "thread.values");
    values->setAlignment(llvm::Align(64));
    thread_values = values;
  } else {
    thread_values =
        b.CreateGEP(b.getInt8Ty(), scratch, i64(shared_layout.fixed_bytes), "thread.values");
  }
  for (uint32_t s = 0; s < program.shared.size(); ++s) {
    Value* offset = i64(shared_layout.offsets[s]);
    if (program.shared[s].count == 0)  // the dynamic array lies behind the threads' values
      offset = b.CreateAdd(i64(shared_layout.fixed_bytes),
                           b.CreateMul(padded_threads, i64(plan.thread_bytes)));
    shared.push_back(b.CreateGEP(b.getInt8Ty(), scratch, offset, program.shared[s].name));
  }
}

void Kernel::read_launch() {
  Value* const launch = function->getArg(0);
  scratch = function->getArg(3);
  const auto field = [&](size_t offset, llvm::Type* type) {
    return b.CreateAlignedLoad(type, b.CreateConstGEP1_64(b.getInt8Ty(), launch, offset),
                               llvm::Align(type->isIntegerTy(32) ? 4 : 8));
  };
  for (int axis = 0; axis < 3; ++axis) {
    grid[axis] = b.CreateZExt(field(offsetof(NativeLaunch, grid) + 4 * axis, b.getInt32Ty()),
                              b.getInt64Ty());
    block[axis] =
        whole_block ? i64(axis == 0 ? whole_block : 1)
                    : b.CreateZExt(field(offsetof(NativeLaunch, block) + 4 * axis, b.getInt32Ty()),
                                   b.getInt64Ty());
  }
  std::vector<bool> used(program.parameters.size(), false);
  for (const isa::Instruction& i : program.body)
    if (isa::uses(i, isa::kFieldSymbol) && !isa::is_shared_access(i.op)) used[i.symbol] = true;
  Value* const words = field(offsetof(NativeLaunch, parameters), b.getPtrTy());
  Value* const counts = field(offsetof(NativeLaunch, lengths), b.getPtrTy());
  for (uint32_t p = 0; p < program.parameters.size(); ++p) {
    if (!used[p]) continue;
    const isa::Parameter& parameter = program.parameters[p];
    Value* const word = b.CreateConstGEP1_64(b.getInt64Ty(), words, p);
    if (parameter.is_array) {
      parameters[p] = b.CreateAlignedLoad(b.getPtrTy(), word, llvm::Align(8), parameter.name);
      lengths[p] = b.CreateAlignedLoad(
          b.getInt64Ty(), b.CreateConstGEP1_64(b.getInt64Ty(), counts, p), llvm::Align(8));
    } else {
      Value* const stored = b.CreateAlignedLoad(ops.memory_type(parameter.type), word,
                                                llvm::Align(8), parameter.name);
      parameters[p] = ops.from_memory(parameter.type, stored);
    }
  }
}

void Kernel::take_words() {
  grid.fill(i64(1));
  block.fill(i64(1));
  for (uint32_t p = 0; p < program.parameters.size(); ++p) {
    const isa::Parameter& parameter = program.parameters[p];
    Value* const word = function->getArg(p);
    if (parameter.is_array) {
      parameters[p] = b.CreateIntToPtr(word, b.getPtrTy(), parameter.name);
    } else {
      llvm::Type* const type = ops.memory_type(parameter.type);
      Value* const bits = b.CreateTrunc(word, b.getIntNTy(type->getScalarSizeInBits()));
      parameters[p] = ops.from_memory(parameter.type, b.CreateBitCast(bits, type));
    }
  }
}

llvm::AllocaInst* Kernel::slot(llvm::Type* type, const llvm::Twine& name) {
  llvm::BasicBlock& first = function->getEntryBlock();
  llvm::IRBuilder<> at_start(&first, first.begin());
  return at_start.CreateAlloca(type, nullptr, name);
}

llvm::BasicBlock* Kernel::block_named(const llvm::Twine& name) {
  return llvm::BasicBlock::Create(b.getContext(), name, function);
}

void Kernel::go_to(llvm::BasicBlock* block) {
  b.CreateBr(block);
  b.SetInsertPoint(block);
}

void Kernel::finish() {
  if (words) {
    b.CreateRetVoid();
    return;
  }
  Value* const code = b.CreateLoad(b.getInt32Ty(), trap);
  llvm::BasicBlock* const trapped = block_named("trapped");
  llvm::BasicBlock* const done = block_named("return");
  b.CreateCondBr(b.CreateICmpNE(code, b.getInt32(0)), trapped, done);
  b.SetInsertPoint(trapped);
  Value* const field =
      b.CreateConstGEP1_64(b.getInt8Ty(), function->getArg(0), offsetof(NativeLaunch, trap));
  Value* const address = b.CreateAlignedLoad(b.getPtrTy(), field, llvm::Align(8));
  // Several threads may trap at once.
  b.CreateAlignedStore(code, address, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Monotonic);
  go_to(done);
  b.CreateRetVoid();
}

Value* Kernel::thread_memory(uint32_t offset, unsigned element_bytes, Value* number) {
  Value* const start = b.CreateMul(padded_threads, i64(offset));
  return b.CreateGEP(b.getInt8Ty(), thread_values,
                     b.CreateAdd(start, b.CreateMul(number, i64(element_bytes))));
}

}  // namespace hologram::codegen
