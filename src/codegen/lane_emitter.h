// LaneEmitter: writes what a vector of threads does in one segment, as SPMD on SIMD.
//
// Internal to the layer (LLVM types). Uniform control flow becomes branches. Where lanes diverge,
// both sides run one after the other under masks; a loop runs until no lane is left in it. At every
// point that is reached at least one lane is active.
#pragma once

#include <llvm/ADT/DenseMap.h>

#include <vector>

#include "codegen/kernel.h"
#include "support/function_ref.h"

namespace hologram::codegen {

class LaneEmitter {
 public:
  // `shapes` must be single_lane() when there is one lane, and outlive the emitter.
  LaneEmitter(Kernel& kernel, unsigned lanes, const LaneShapes& shapes);

  unsigned lanes() const { return lanes_; }

  // Writes the segment for the lanes of `group` that `mask` has (null: all) at the builder's
  // position and leaves it where they are done. When `give_up` is not null the code may jump there
  // instead, before it has changed anything: some lanes then have to run under a mask.
  void segment(const BlockStep& segment, const ThreadGroup& group, llvm::Value* mask,
               llvm::BasicBlock* give_up);

  // All lanes are known to pass this `if` (null: nothing is known).
  void assume(const isa::Instruction* if_begin) { assumed_ = if_begin; }
  // Whole vectors are stored around the caches. Every store must be of an aligned machine vector.
  void set_stream(bool stream) { stream_ = stream; }

 private:
  // A value of all lanes: a vector, or lane 0's with a constant distance from lane to lane.
  struct Lanes {
    llvm::Value* value = nullptr;
    int64_t stride = 0;
    bool is_vector = false;
  };
  struct Loop {
    uint32_t body = kNoRegion;
    llvm::BasicBlock* next = nullptr;
    llvm::BasicBlock* end = nullptr;
    llvm::AllocaInst* live = nullptr;     // lanes that have not left; null: none leaves alone
    llvm::AllocaInst* skipped = nullptr;  // lanes that wait for the next turn
  };
  // A comparison of a linear value with a uniform one, and what `if` needs to know of it.
  struct Guard {
    llvm::Value* all = nullptr;
    llvm::Value* none = nullptr;
  };

  // lane_emitter.cpp: registers and instructions
  const LaneShape& shape(isa::Register r) const { return shapes_.registers[r.index]; }
  llvm::AllocaInst* slot(isa::Register r);
  Lanes read(isa::Register r);
  llvm::Value* read_scalar(isa::Register r) { return read(r).value; }
  llvm::Value* read_vector(isa::Register r) { return vector(read(r)); }
  llvm::Value* vector(Lanes lanes);
  void assign(isa::Register dst, Lanes value, uint32_t instruction);
  void instruction(uint32_t index);
  llvm::Value* evaluate(const isa::Instruction& i, llvm::ArrayRef<llvm::Value*> operands);
  Lanes id(const isa::Instruction& i);
  void load_kept(const BlockStep& segment);
  void store_kept(const BlockStep& segment);
  void note_guard(const isa::Instruction& i);

  // lane_memory.cpp
  Lanes load(const isa::Instruction& i);
  void store(const isa::Instruction& i);
  llvm::Value* base_of(const isa::Instruction& i);
  llvm::Value* wide_index(isa::Register r, llvm::Value* index);
  llvm::Value* row_address(const isa::Instruction& i, llvm::Type* element);
  llvm::Value* full_mask();
  bool has_masked_access(DType type, bool is_load, bool in_a_row) const;
  llvm::Value* load_lane_by_lane(const isa::Instruction& i);
  void store_lane_by_lane(const isa::Instruction& i, llvm::Value* value);
  // Into memory, so that a loop can take the lanes one by one.
  llvm::Value* spill(llvm::Value* vector);
  void for_each_active_lane(FunctionRef<void(llvm::Value*)> body);

  // lane_atomics.cpp
  Lanes atomic(const isa::Instruction& i);
  llvm::Value* atomic_scalar(const isa::Instruction& i, llvm::Value* address, llvm::Value* operand,
                             llvm::Value* desired);

  // lane_control.cpp
  void region(uint32_t region);
  void statements(const std::vector<Statement>& list, uint32_t first, uint32_t last);
  void statement(const Statement& s);
  void rest(const Statement& s, llvm::Value* mask_before);
  void if_statement(const Statement& s);
  bool guarded_if(const Statement& s);
  bool is_flat(uint32_t region) const;
  struct Counting;
  void for_statement(const Statement& s);
  bool is_dense(const Statement& s) const;
  void dense_turns(const Statement& s, const Counting& c);
  llvm::Value* before_end(const Counting& c, llvm::Value* value);
  Lanes current(const Counting& c);
  void loop_statement(const Statement& s);
  Loop open_loop(const Statement& s);
  void start_turn(Loop& loop, llvm::Value* mask_before);
  void jump(uint32_t index);
  void leave(llvm::AllocaInst* lanes);
  bool diverges(uint32_t from, uint32_t to) const;
  bool jumps_by_mask(uint32_t index) const;
  void branch_if_any(llvm::Value* mask, llvm::BasicBlock* some, llvm::BasicBlock* none);

  Kernel& kernel_;
  llvm::IRBuilder<>& b;
  LaneOps& ops_;
  const unsigned lanes_;
  const LaneShapes& shapes_;
  std::vector<llvm::AllocaInst*> slots_;

  // Of the segment being written.
  ThreadGroup group_;
  llvm::Value* mask_ = nullptr;  // null: all lanes
  llvm::BasicBlock* end_ = nullptr;
  llvm::AllocaInst* alive_ = nullptr;  // lanes that have not returned; null: none returns alone
  std::vector<Loop> loops_;
  std::vector<bool> resolved_;  // divergent regions that all lanes or none enter after all
  // Guards are looked for while nothing has been changed and control flow is straight.
  llvm::BasicBlock* give_up_ = nullptr;
  bool in_guard_chain_ = false;
  llvm::DenseMap<uint32_t, Guard> guards_;

  const isa::Instruction* assumed_ = nullptr;
  bool stream_ = false;
};

}  // namespace hologram::codegen
