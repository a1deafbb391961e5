#include "codegen/function_emitter.h"

#include <cstddef>

#include "isa/fields.h"
#include "isa/native_abi.h"

namespace hologram::codegen {

using isa::Opcode;
using llvm::BasicBlock;
using llvm::Value;

FunctionEmitter::FunctionEmitter(const isa::Program& program, const Target& target,
                                 llvm::Function* function, llvm::IRBuilder<>& builder)
    : b(builder),
      kernel_(program, target, function, builder),
      shapes_(analyse_lanes(program, kernel_.tree)),
      single_(single_lane(program, kernel_.tree)),
      one_row_(runs_as_one_row()),
      width_(choose_width(kernel_, shapes_, one_row_)) {
  if (width_.main > 0) main_ = std::make_unique<LaneEmitter>(kernel_, width_.main, shapes_);
  tail_ = std::make_unique<LaneEmitter>(kernel_, width_.tail, width_.tail == 1 ? single_ : shapes_);
}

// Blocks along x without anything of their own are one long row of threads, if nothing asks which
// block a thread is in.
bool FunctionEmitter::runs_as_one_row() const {
  if (kernel_.tree.synchronises || !kernel_.program.shared.empty()) return false;
  std::vector<bool> used(kernel_.program.registers.size(), false);
  for (const isa::Instruction& i : kernel_.program.body)
    for (const isa::Operand& o : isa::operands_of(i)) used[o.reg.index] = true;
  for (const isa::Instruction& i : kernel_.program.body)
    if ((i.op == Opcode::thread_id || i.op == Opcode::block_id) && i.aux == 0 && used[i.dst.index])
      return false;
  return true;
}

// Where is block `number`? Most grids have one row, which needs no division.
void FunctionEmitter::find_block(Value* number) {
  BasicBlock* const start = b.GetInsertBlock();
  BasicBlock* const divide = kernel_.block_named("grid.2d");
  BasicBlock* const found = kernel_.block_named("block.found");
  Value* const plane = b.CreateMul(kernel_.grid[0], kernel_.grid[1]);
  Value* const rows = b.CreateMul(kernel_.grid[1], kernel_.grid[2]);
  b.CreateCondBr(b.CreateICmpULE(rows, kernel_.i64(1)), found, divide);
  b.SetInsertPoint(divide);
  Value* const in_plane = b.CreateURem(number, plane);
  const std::array<Value*, 3> divided = {b.CreateURem(in_plane, kernel_.grid[0]),
                                         b.CreateUDiv(in_plane, kernel_.grid[0]),
                                         b.CreateUDiv(number, plane)};
  kernel_.go_to(found);
  for (int axis = 0; axis < 3; ++axis) {
    llvm::PHINode* const phi = b.CreatePHI(b.getInt64Ty(), 2);
    phi->addIncoming(axis == 0 ? number : kernel_.i64(0), start);
    phi->addIncoming(divided[axis], divide);
    group_.block[axis] = phi;
  }
}

// Vectors rely on indices that do not wrap around inside the range of an array. Arrays that long
// are run thread by thread; see LaneEmitter::row_address.
Value* FunctionEmitter::must_be_careful() {
  std::vector<bool> listed(kernel_.program.parameters.size(), false);
  Value* careful = b.getFalse();
  for (const isa::Instruction& i : kernel_.program.body) {
    const isa::Form form = isa::info(i.op).form;
    if ((form != isa::Form::load && form != isa::Form::store) || isa::is_shared_access(i.op))
      continue;
    const LaneShape& index = shapes_.registers[i.a.index];
    if (listed[i.symbol] || kernel_.program.registers[i.a.index] != DType::u32 ||
        !index.is_linear() || index.stride != 1 || index.exact)
      continue;
    listed[i.symbol] = true;
    constexpr uint64_t kLongest = (uint64_t{1} << 32) - 1024;
    careful =
        b.CreateOr(careful, b.CreateICmpUGT(kernel_.lengths[i.symbol], kernel_.i64(kLongest)));
  }
  return careful;
}

void FunctionEmitter::emit() {
  Value* const first = kernel_.function->getArg(1);
  Value* const last = kernel_.function->getArg(2);
  careful_ = must_be_careful();

  BasicBlock* const before = b.GetInsertBlock();
  BasicBlock* const head = kernel_.block_named("blocks");
  BasicBlock* const body = kernel_.block_named("block");
  BasicBlock* const end = kernel_.block_named("end");
  kernel_.go_to(head);
  llvm::PHINode* const number = b.CreatePHI(b.getInt64Ty(), 2);
  number->addIncoming(first, before);
  b.CreateCondBr(b.CreateICmpULT(number, last), body, end);

  b.SetInsertPoint(body);
  find_block(number);
  Value* count = kernel_.i64(1);
  if (one_row_) {
    count = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                    b.CreateSub(kernel_.grid[0], group_.block[0]),
                                    b.CreateSub(last, number));
    blocks_in_a_row(count);
  } else {
    block_end_ = kernel_.block_named("block.end");
    if (kernel_.plan.keeps_alive) start_alive();
    steps(kernel_.plan.steps);
    kernel_.go_to(block_end_);
  }
  number->addIncoming(b.CreateAdd(number, count), b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(end);
  finish();
}

void FunctionEmitter::finish() {
  Value* const code = b.CreateLoad(b.getInt32Ty(), kernel_.trap);
  BasicBlock* const trapped = kernel_.block_named("trapped");
  BasicBlock* const done = kernel_.block_named("return");
  b.CreateCondBr(b.CreateICmpNE(code, b.getInt32(0)), trapped, done);
  b.SetInsertPoint(trapped);
  Value* const field = b.CreateConstGEP1_64(b.getInt8Ty(), kernel_.function->getArg(0),
                                            offsetof(isa::NativeLaunch, trap));
  Value* const address = b.CreateAlignedLoad(b.getPtrTy(), field, llvm::Align(8));
  // Several threads may trap at once.
  b.CreateAlignedStore(code, address, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Monotonic);
  kernel_.go_to(done);
  b.CreateRetVoid();
}

}  // namespace hologram::codegen
