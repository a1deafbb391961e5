// FlatEmitter: writes the entry function of a program that maps elements: straight code, at most
// behind one `if global_id.x < n`.
//
// A launch along x alone is then one loop with one trip count, min(threads, n): no question is
// asked inside it, and what goes before it is a handful of instructions, so that a thousand
// elements run as fast as a loop written by hand. Outputs far larger than the caches are stored
// around them. Every other launch is handed to the function that FunctionEmitter wrote.
//
// Internal to the layer (LLVM types).
#pragma once

#include <memory>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/lane_emitter.h"

namespace hologram::codegen {

class FlatEmitter {
 public:
  // Whether the program is of that form, and short enough for the loop to be worth writing.
  static bool suits(const isa::Program& program);

  // Whether a program that suits needs nothing of a launch but its words.
  static bool needs_words_alone(const isa::Program& program);

  // `function` has the type of a NativeEntry, or with `words` takes the parameters' words, and no
  // body yet; `program` must suit.
  FlatEmitter(const isa::Program& program, const Target& target, llvm::Function* function,
              llvm::IRBuilder<>& builder, bool words = false);

  // `general` runs what is not one row.
  void emit(llvm::Function* general);
  // The function of the words: all threads that the `if` lets through.
  void emit();

 private:
  void rows(llvm::Value* begin, llvm::Value* end);
  void vectors(llvm::Value* begin, llvm::Value* end, llvm::BasicBlock* after, bool stream);
  void tail(llvm::Value* first, llvm::Value* last);
  void body(LaneEmitter& emitter, llvm::Value* x, llvm::Value* mask);
  llvm::Value* guard_bound();
  bool can_stream() const;
  llvm::Value* is_large();
  llvm::Value* stores_whole_lines(llvm::Value* begin);
  llvm::Value* value_at(isa::Register r, llvm::Value* x);

  llvm::IRBuilder<>& b;
  Kernel kernel_;
  LaneShapes shapes_;
  LaneShapes single_;
  std::vector<const isa::Instruction*> made_by_;  // of each register that is assigned once
  const isa::Instruction* guard_ = nullptr;       // the `if`
  unsigned lanes_;
  LaneEmitter vector_;
  std::unique_ptr<LaneEmitter> one_;  // thread by thread, where the target has no masks
};

}  // namespace hologram::codegen
