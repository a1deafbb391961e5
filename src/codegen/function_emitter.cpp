#include "codegen/function_emitter.h"

#include <algorithm>

#include "isa/fields.h"

namespace hologram::codegen {

using isa::Opcode;
using llvm::BasicBlock;
using llvm::Value;

FunctionEmitter::FunctionEmitter(const isa::Program& program, const Target& target,
                                 llvm::Function* function, llvm::IRBuilder<>& builder,
                                 unsigned whole_block)
    : b(builder),
      kernel_(program, target, function, builder, whole_block),
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

// Where is block `number`? Most grids are one row or one column, which needs no division.
void FunctionEmitter::find_block(Value* number) {
  BasicBlock* const start = b.GetInsertBlock();
  BasicBlock* const more = kernel_.block_named("grid.rows");
  BasicBlock* const divide = kernel_.block_named("grid.2d");
  BasicBlock* const found = kernel_.block_named("block.found");
  Value* const zero = kernel_.i64(0);
  Value* const one = kernel_.i64(1);
  Value* const rows = b.CreateMul(kernel_.grid[1], kernel_.grid[2]);
  b.CreateCondBr(b.CreateICmpULE(rows, one), found, more);
  b.SetInsertPoint(more);
  Value* const column = b.CreateMul(kernel_.grid[0], kernel_.grid[2]);
  b.CreateCondBr(b.CreateICmpULE(column, one), found, divide);
  b.SetInsertPoint(divide);
  Value* const plane = b.CreateMul(kernel_.grid[0], kernel_.grid[1]);
  Value* const in_plane = b.CreateURem(number, plane);
  const std::array<Value*, 3> divided = {b.CreateURem(in_plane, kernel_.grid[0]),
                                         b.CreateUDiv(in_plane, kernel_.grid[0]),
                                         b.CreateUDiv(number, plane)};
  kernel_.go_to(found);
  for (int axis = 0; axis < 3; ++axis) {
    llvm::PHINode* const phi = b.CreatePHI(b.getInt64Ty(), 3);
    phi->addIncoming(axis == 0 ? number : zero, start);
    phi->addIncoming(axis == 1 ? number : zero, more);
    phi->addIncoming(divided[axis], divide);
    group_.block[axis] = phi;
  }
}

namespace {

// Whether the length of the array that `i` reads or writes decides how it may be done.
bool depends_on_length(const isa::Program& program, const LaneShapes& shapes,
                       const isa::Instruction& i) {
  const isa::Form form = isa::info(i.op).form;
  if ((form != isa::Form::load && form != isa::Form::store) || isa::is_shared_access(i.op))
    return false;
  const LaneShape& index = shapes.registers[i.a.index];
  return program.registers[i.a.index] == DType::u32 && index.is_linear() && index.stride == 1 &&
         !index.exact;
}

}  // namespace

bool may_be_careful(const isa::Program& program, const LaneShapes& shapes) {
  return std::ranges::any_of(program.body, [&](const isa::Instruction& i) {
    return depends_on_length(program, shapes, i);
  });
}

Value* must_be_careful(Kernel& kernel, const LaneShapes& shapes) {
  llvm::IRBuilder<>& b = kernel.b;
  std::vector<bool> listed(kernel.program.parameters.size(), false);
  Value* careful = nullptr;
  for (const isa::Instruction& i : kernel.program.body) {
    if (!depends_on_length(kernel.program, shapes, i) || listed[i.symbol]) continue;
    listed[i.symbol] = true;
    constexpr uint64_t kLongest = (uint64_t{1} << 32) - 1024;
    Value* const too_long = b.CreateICmpUGT(kernel.lengths[i.symbol], kernel.i64(kLongest));
    careful = careful ? b.CreateOr(careful, too_long) : too_long;
  }
  return careful;
}

void FunctionEmitter::emit() {
  Value* const first = kernel_.function->getArg(1);
  Value* const last = kernel_.function->getArg(2);
  careful_ = must_be_careful(kernel_, shapes_);
  if (!careful_) careful_ = b.getFalse();

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
  kernel_.finish();
}

}  // namespace hologram::codegen
