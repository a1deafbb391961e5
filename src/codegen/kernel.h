// Kernel: what every emitter of one function shares: the program, what is known about it, the
// function being written and the values of the launch.
//
// Internal to the layer (LLVM types).
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <vector>

#include "codegen/block_plan.h"
#include "codegen/control_tree.h"
#include "codegen/lane_ops.h"
#include "codegen/lane_shape.h"
#include "codegen/target.h"
#include "isa/program.h"

namespace hologram::codegen {

// Where the lanes of a vector are. All values are i64; x is that of lane 0.
struct ThreadGroup {
  std::array<llvm::Value*, 3> block{};   // of the grid
  std::array<llvm::Value*, 3> thread{};  // of the block; x is null where blocks run as one row
  llvm::Value* global_x = nullptr;
  llvm::Value* number = nullptr;  // of lane 0 in its block; null where nothing is kept a thread
  bool fits_31_bits = false;      // global_x, of every lane
};

struct Kernel {
  // `whole_block`: the function is for blocks of exactly that many threads along x, which run as
  // one vector; what they keep between segments then stays in registers. 0: blocks of any size.
  // `words`: the function's arguments are the parameters' words; there is no launch, no length and
  // no trap.
  Kernel(const isa::Program& program, const Target& target, llvm::Function* function,
         llvm::IRBuilder<>& builder, unsigned whole_block = 0, bool words = false);

  const isa::Program& program;
  const Target& target;
  llvm::Function* function;
  llvm::IRBuilder<>& b;
  const unsigned whole_block;
  const bool words;
  ControlTree tree;
  isa::Uniformity uniformity;
  BlockPlan plan;
  isa::SharedLayout shared_layout;
  std::vector<const isa::Instruction*> constants;  // see find_constants()

  // Valid everywhere in the function; those of arrays and scalars that are used.
  std::array<llvm::Value*, 3> grid{};   // i64
  std::array<llvm::Value*, 3> block{};  // i64
  std::vector<llvm::Value*> parameters;
  std::vector<llvm::Value*> lengths;      // i64
  std::vector<llvm::Value*> shared;       // pointers
  llvm::Value* block_threads = nullptr;   // i64
  llvm::Value* padded_threads = nullptr;  // i64, a multiple of 64
  llvm::Value* scratch = nullptr;
  llvm::Value* thread_values = nullptr;  // what threads keep between segments
  llvm::Value* trap = nullptr;           // i32 slot
  LaneOps ops;

  // Storage::block registers: their value, and what the running segment makes of it. Threads that
  // run the segment later must not see the new value, so it becomes the value afterwards.
  std::vector<llvm::AllocaInst*> block_slots;
  std::vector<llvm::AllocaInst*> next_block_slots;

  // A stack slot, made in the function's first block.
  llvm::AllocaInst* slot(llvm::Type* type, const llvm::Twine& name = "");
  llvm::BasicBlock* block_named(const llvm::Twine& name);
  // Continues in `block` after jumping there, unless this point is never reached.
  void go_to(llvm::BasicBlock* block);
  // Reports a trap, if there was one, and returns.
  void finish();
  void read_launch();
  void take_words();
  // The address of what register `r` (Storage::thread) of thread `number` holds.
  llvm::Value* thread_memory(uint32_t offset, unsigned element_bytes, llvm::Value* number);

  // Writes `for (i = first; i < last; i += step) body(i)`, all i64.
  template <typename Body>
  void count(llvm::Value* first, llvm::Value* last, llvm::Value* step, const llvm::Twine& name,
             Body&& body) {
    llvm::BasicBlock* const before = b.GetInsertBlock();
    llvm::BasicBlock* const head = block_named(name);
    llvm::BasicBlock* const inside = block_named(name + ".body");
    llvm::BasicBlock* const after = block_named(name + ".end");
    b.CreateBr(head);
    b.SetInsertPoint(head);
    llvm::PHINode* const i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(first, before);
    b.CreateCondBr(b.CreateICmpULT(i, last), inside, after);
    b.SetInsertPoint(inside);
    body(i);
    i->addIncoming(b.CreateAdd(i, step), b.GetInsertBlock());
    b.CreateBr(head);
    b.SetInsertPoint(after);
  }

  llvm::Value* i64(uint64_t value) const { return b.getInt64(value); }
};

}  // namespace hologram::codegen
