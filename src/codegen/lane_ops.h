// LaneOps: the arithmetic of the ISA as LLVM IR, on scalars and on vectors of any width alike.
//
// Internal to the layer (LLVM types). In registers bool is i1 and f16 and bf16 are their 16 bits;
// in memory bool is a byte. Nothing here reads memory, except tables of constants, or depends on
// which register a value came from.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "codegen/target.h"
#include "isa/native_abi.h"
#include "isa/opcode.h"
#include "support/dtype.h"

namespace hologram::codegen {

class LaneOps {
 public:
  // `trap` is an i32 stack slot for a TrapCode.
  LaneOps(llvm::IRBuilder<>& builder, const Target& target, llvm::Value* trap)
      : b(builder), target_(target), trap_(trap) {}

  const Target& target() const { return target_; }

  // ---- types and constants
  llvm::Type* register_type(DType type) const;
  llvm::Type* memory_type(DType type) const;
  static unsigned lanes_of(const llvm::Value* value);
  // `element`, as often as `like` has lanes.
  static llvm::Type* with_lanes(llvm::Type* element, const llvm::Value* like);
  static llvm::Type* with_lanes(llvm::Type* element, unsigned lanes);
  llvm::Constant* bits(DType type, uint64_t bits) const;
  llvm::Value* splat(llvm::Value* scalar, unsigned lanes);
  llvm::Value* from_memory(DType type, llvm::Value* value);
  llvm::Value* to_memory(DType type, llvm::Value* value);

  // ---- instructions by form; operands and results have register types
  llvm::Value* unary(isa::Opcode op, DType type, llvm::Value* a);
  llvm::Value* binary(isa::Opcode op, DType type, llvm::Value* a, llvm::Value* b2);
  llvm::Value* ternary(isa::Opcode op, DType type, llvm::Value* a, llvm::Value* b2, llvm::Value* c);
  llvm::Value* shift(isa::Opcode op, DType type, llvm::Value* a, llvm::Value* amount_u32);
  llvm::Value* compare(isa::Opcode op, DType type, llvm::Value* a, llvm::Value* b2);
  llvm::Value* convert(DType to, DType from, llvm::Value* a);
  llvm::Value* bitcast(DType to, DType from, llvm::Value* a);

  // ---- lanes together
  llvm::Value* any(llvm::Value* mask);
  llvm::Value* all(llvm::Value* mask);
  llvm::Value* lane_numbers(llvm::Type* element, unsigned lanes);

  // Remembers a trap if any lane of `condition` that is active has one.
  void trap_if(llvm::Value* condition, isa::TrapCode code);
  // The lanes that run now; null: all of them.
  llvm::Value* active = nullptr;

  llvm::IRBuilder<>& b;

 private:
  llvm::Value* integer_division(isa::Opcode op, DType type, llvm::Value* a, llvm::Value* b2);
  llvm::Value* float_binary(isa::Opcode op, llvm::Value* a, llvm::Value* b2);
  llvm::Value* float_extreme(isa::Opcode op, llvm::Value* a, llvm::Value* b2);
  llvm::Value* float_remainder(llvm::Value* a, llvm::Value* b2);
  llvm::Value* float_unary(isa::Opcode op, llvm::Value* a);
  llvm::Value* fused(llvm::Value* a, llvm::Value* b2, llvm::Value* c);
  llvm::Value* class_lookup(isa::Opcode op, llvm::Value* a, llvm::Value* b2);

  // Floats narrower than f32 compute in f32.
  llvm::Value* widen(DType type, llvm::Value* value);
  llvm::Value* narrow(DType type, llvm::Value* value);
  llvm::Value* half_to_float(llvm::Value* bits);
  llvm::Value* float_to_half(llvm::Value* value);
  llvm::Value* bfloat_to_float(llvm::Value* bits);
  llvm::Value* float_to_bfloat(llvm::Value* value);
  llvm::Value* double_to_float_odd(llvm::Value* value);
  llvm::Value* float_to_integer(DType to, llvm::Value* value);
  llvm::Value* integer_to_float(DType to, DType from, llvm::Value* value);
  llvm::Value* constant_like(llvm::Value* like, uint64_t value);

  const Target& target_;
  llvm::Value* trap_;
};

}  // namespace hologram::codegen
