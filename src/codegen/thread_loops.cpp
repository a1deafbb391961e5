// The loops over threads of the function emitter.
#include "codegen/function_emitter.h"
#include "isa/fields.h"

namespace hologram::codegen {

using llvm::BasicBlock;
using llvm::Value;

// Threads along x that run before the next y: enough to stream, few enough that what the rows of a
// block have in common (a column panel of a product) is still in cache.
constexpr uint64_t kRowPiece = 256;

void FunctionEmitter::blocks_in_a_row(Value* blocks) {
  Value* const begin = b.CreateMul(group_.block[0], kernel_.block[0]);
  Value* const end = b.CreateAdd(begin, b.CreateMul(blocks, kernel_.block[0]));
  // A 32-bit id that wraps around runs thread by thread.
  Value* careful = careful_;
  for (const isa::Instruction& i : kernel_.program.body)
    if (i.op == isa::Opcode::global_id && i.aux == 0 && bits_of(i.type) == 32) {
      careful = b.CreateOr(careful, b.CreateICmpUGT(end, kernel_.i64(uint64_t{1} << 31)));
      break;
    }
  const BlockStep& segment = kernel_.plan.steps[0];
  Value* const rows = b.CreateMul(kernel_.block[1], kernel_.block[2]);
  Value* const piece = b.CreateSelect(b.CreateICmpULE(rows, kernel_.i64(1)),
                                      b.CreateSub(end, begin), kernel_.i64(kRowPiece));
  group_.thread[0] = nullptr;
  group_.block[0] = nullptr;
  kernel_.count(begin, end, piece, "piece", [&](Value* x) {
    Value* const piece_end =
        b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b.CreateAdd(x, piece), end);
    kernel_.count(kernel_.i64(0), kernel_.block[2], kernel_.i64(1), "z", [&](Value* z) {
      group_.thread[2] = z;
      kernel_.count(kernel_.i64(0), kernel_.block[1], kernel_.i64(1), "y", [&](Value* y) {
        group_.thread[1] = y;
        row(segment, x, piece_end, careful);
      });
    });
  });
}

void FunctionEmitter::threads_of_block(const BlockStep& segment) {
  Value* const careful = careful_;
  if (kernel_.whole_block) {
    group_.thread[2] = group_.thread[1] = kernel_.i64(0);
    return row(segment, kernel_.i64(0), kernel_.block[0], careful);
  }
  kernel_.count(kernel_.i64(0), kernel_.block[2], kernel_.i64(1), "z", [&](Value* z) {
    group_.thread[2] = z;
    kernel_.count(kernel_.i64(0), kernel_.block[1], kernel_.i64(1), "y", [&](Value* y) {
      group_.thread[1] = y;
      row(segment, kernel_.i64(0), kernel_.block[0], careful);
    });
  });
}

// Threads [first, last) along x: as many as possible in vectors with all lanes, what is left or
// given up by the tail emitter.
void FunctionEmitter::row(const BlockStep& segment, Value* first, Value* last, Value* careful) {
  if (kernel_.whole_block) return vector_of_threads(*main_, segment, first, nullptr, nullptr);
  if (!main_) {
    tail(segment, first, last, careful);
    return;
  }
  BasicBlock* const before = b.GetInsertBlock();
  BasicBlock* const head = kernel_.block_named("row");
  BasicBlock* const main = kernel_.block_named("vector");
  BasicBlock* const given_up = kernel_.block_named("given.up");
  BasicBlock* const short_row = kernel_.block_named("row.short");
  BasicBlock* const rest = kernel_.block_named("row.rest");
  BasicBlock* const end = kernel_.block_named("row.end");
  Value* const width = kernel_.i64(width_.main);

  kernel_.go_to(head);
  llvm::PHINode* const x = b.CreatePHI(b.getInt64Ty(), 3, "x");
  x->addIncoming(first, before);
  Value* const left = b.CreateSub(last, x);
  Value* const fits = b.CreateICmpUGE(left, width);
  b.CreateCondBr(b.CreateAnd(fits, b.CreateNot(careful)), main, short_row);

  b.SetInsertPoint(main);
  vector_of_threads(*main_, segment, x, nullptr, kernel_.tree.synchronises ? nullptr : given_up);
  x->addIncoming(b.CreateAdd(x, width), b.GetInsertBlock());
  b.CreateBr(head);

  b.SetInsertPoint(short_row);
  b.CreateCondBr(b.CreateICmpEQ(left, kernel_.i64(0)), end, rest);
  b.SetInsertPoint(given_up);
  Value* const given_up_end = b.CreateAdd(x, width);
  kernel_.go_to(rest);
  llvm::PHINode* const rest_end = b.CreatePHI(b.getInt64Ty(), 2);
  rest_end->addIncoming(last, short_row);
  rest_end->addIncoming(given_up_end, given_up);
  Value* const next = tail(segment, x, rest_end, careful);
  x->addIncoming(next, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(end);
}

// Threads [first, last), at least one of them; returns `last`.
Value* FunctionEmitter::tail(const BlockStep& segment, Value* first, Value* last, Value* careful) {
  BasicBlock* const before = b.GetInsertBlock();
  BasicBlock* const turn = kernel_.block_named("tail");
  BasicBlock* const end = kernel_.block_named("tail.end");
  kernel_.go_to(turn);
  llvm::PHINode* const t = b.CreatePHI(b.getInt64Ty(), 2, "t");
  t->addIncoming(first, before);
  Value* step = kernel_.i64(1);
  Value* mask = nullptr;
  if (width_.tail > 1) {
    Value* const most = b.CreateSelect(careful, kernel_.i64(1), kernel_.i64(width_.tail));
    step = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b.CreateSub(last, t), most);
    Value* const count = kernel_.ops.splat(b.CreateTrunc(step, b.getInt32Ty()), width_.tail);
    mask = b.CreateICmpULT(kernel_.ops.lane_numbers(b.getInt32Ty(), width_.tail), count);
  }
  vector_of_threads(*tail_, segment, t, mask, nullptr);
  Value* const next = b.CreateAdd(t, step);
  t->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, last), turn, end);
  b.SetInsertPoint(end);
  return next;
}

void FunctionEmitter::vector_of_threads(LaneEmitter& emitter, const BlockStep& segment, Value* x,
                                        Value* mask, BasicBlock* give_up) {
  ThreadGroup group = group_;
  if (one_row_) {
    group.global_x = x;
  } else {
    group.thread[0] = x;
    group.global_x = b.CreateAdd(b.CreateMul(group.block[0], kernel_.block[0]), x);
    Value* const row = b.CreateAdd(b.CreateMul(group.thread[2], kernel_.block[1]), group.thread[1]);
    group.number = b.CreateAdd(b.CreateMul(row, kernel_.block[0]), x);
  }
  if (!kernel_.plan.keeps_alive) return emitter.segment(segment, group, mask, give_up);

  Value* const address = kernel_.thread_memory(kernel_.plan.alive_offset, 1, group.number);
  llvm::Type* const bytes = LaneOps::with_lanes(b.getInt8Ty(), emitter.lanes());
  Value* const stored =
      mask ? static_cast<Value*>(b.CreateMaskedLoad(bytes, address, llvm::Align(1), mask,
                                                    llvm::Constant::getNullValue(bytes)))
           : b.CreateAlignedLoad(bytes, address, llvm::Align(1));
  Value* const alive = kernel_.ops.from_memory(DType::boolean, stored);
  BasicBlock* const some = kernel_.block_named("some.alive");
  BasicBlock* const end = kernel_.block_named("alive.end");
  b.CreateCondBr(kernel_.ops.any(alive), some, end);
  b.SetInsertPoint(some);
  emitter.segment(segment, group, emitter.lanes() == 1 ? nullptr : alive, give_up);
  kernel_.go_to(end);
}

}  // namespace hologram::codegen
