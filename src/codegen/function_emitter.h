// FunctionEmitter: writes the entry function of a program: loops over blocks, over the rows of
// threads of a block, and over the vectors of a row, with what the block does together in between.
//
// Internal to the layer (LLVM types).
#pragma once

#include <memory>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/lane_emitter.h"
#include "codegen/vector_width.h"

namespace hologram::codegen {

// Whether an array of this launch is so long that 32-bit indices of neighbours may wrap around
// inside it: then threads run one by one. Null: never. See LaneEmitter::row_address.
llvm::Value* must_be_careful(Kernel& kernel, const LaneShapes& shapes);
// Whether that is a question of the launch at all.
bool may_be_careful(const isa::Program& program, const LaneShapes& shapes);

class FunctionEmitter {
 public:
  // `function` has the type of a NativeEntry; its code goes where `builder` stands.
  // `whole_block`: see Kernel and whole_block_of().
  FunctionEmitter(const isa::Program& program, const Target& target, llvm::Function* function,
                  llvm::IRBuilder<>& builder, unsigned whole_block = 0);

  void emit();

  uint64_t scratch_fixed() const { return kernel_.shared_layout.fixed_bytes; }
  uint64_t scratch_per_thread() const { return kernel_.plan.thread_bytes; }

 private:
  struct BlockLoop {
    llvm::BasicBlock* next;
    llvm::BasicBlock* end;
  };

  // function_emitter.cpp
  bool runs_as_one_row() const;
  void find_block(llvm::Value* number);

  // thread_loops.cpp
  void blocks_in_a_row(llvm::Value* blocks);
  void threads_of_block(const BlockStep& segment);
  void row(const BlockStep& segment, llvm::Value* first, llvm::Value* last, llvm::Value* careful);
  llvm::Value* tail(const BlockStep& segment, llvm::Value* first, llvm::Value* last,
                    llvm::Value* careful);
  void vector_of_threads(LaneEmitter& emitter, const BlockStep& segment, llvm::Value* x,
                         llvm::Value* mask, llvm::BasicBlock* give_up);

  // block_steps.cpp
  void steps(const std::vector<BlockStep>& steps);
  void step(const BlockStep& step);
  void counted_loop(const BlockStep& step);
  void keep_new_values(const BlockStep& segment);
  void start_alive();
  llvm::Value* read(isa::Register r);
  void write(isa::Register r, llvm::Value* value);

  // group_reduction.cpp
  void reduce(const isa::Instruction& i);
  void reduce_whole(const isa::Instruction& i, isa::Opcode op);
  llvm::Value* halve(isa::Opcode op, DType type, llvm::Value* value);

  llvm::IRBuilder<>& b;
  Kernel kernel_;
  LaneShapes shapes_;
  LaneShapes single_;
  bool one_row_;
  VectorWidth width_;
  std::unique_ptr<LaneEmitter> main_;
  std::unique_ptr<LaneEmitter> tail_;

  ThreadGroup group_;  // of the block and row being written
  llvm::Value* careful_ = nullptr;
  llvm::BasicBlock* block_end_ = nullptr;
  std::vector<BlockLoop> loops_;
};

}  // namespace hologram::codegen
