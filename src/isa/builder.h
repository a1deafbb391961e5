// Builder: writes a Program instruction by instruction.
//
// Results get fresh registers unless `assign` or the loops say otherwise. Mistakes (mixed types, a
// break outside a loop) are remembered and reported by finish(), so that building reads straight.
// What is written after a break, continue or return in the same region can never run and is left
// out: a front end need not look for dead code.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "isa/program.h"
#include "support/function_ref.h"
#include "support/result.h"

namespace hologram::isa {

class Builder {
 public:
  explicit Builder(std::string name) { program_.name = std::move(name); }

  // Declarations. A symbol is an index into the parameters or the shared arrays.
  struct Array {
    uint32_t symbol;
    DType type;
  };
  struct Scalar {
    uint32_t symbol;
    DType type;
  };
  struct Shared {
    uint32_t symbol;
    DType type;
  };
  Array array(std::string name, DType type, Access access);
  Scalar scalar(std::string name, DType type);
  Shared shared(std::string name, DType type, uint32_t count);

  // bool for a register that is not one of this builder's; finish() tells.
  DType type_of(Register r) const {
    return known(r) ? program_.registers[r.index] : DType::boolean;
  }
  // The number the next instruction will have, for front ends that keep source positions.
  size_t next_instruction() const { return program_.body.size(); }
  // A fresh, unassigned register: a variable.
  Register variable(DType type);
  void assign(Register dst, Register value);

  // Constants. Integers are checked against the type's range; floats are rounded to it.
  Register integer(DType type, int64_t value);
  Register unsigned_integer(DType type, uint64_t value);
  Register floating(DType type, double value);
  Register boolean(bool value);
  Register bits(DType type, uint64_t bits);

  Register value(Scalar parameter);
  Register length(Array array);
  Register convert(Register a, DType to);
  Register bitcast(Register a, DType to);

  // The generic forms, and the common ones by name. Operands must have one type.
  Register unary(Opcode op, Register a);
  Register binary(Opcode op, Register a, Register b);
  Register ternary(Opcode op, Register a, Register b, Register c);
  Register compare(Opcode op, Register a, Register b);
  Register select(Register condition, Register if_true, Register if_false);
  Register shift(Opcode op, Register a, Register amount_u32);
  Register add(Register a, Register b) { return binary(Opcode::add, a, b); }
  Register sub(Register a, Register b) { return binary(Opcode::sub, a, b); }
  Register mul(Register a, Register b) { return binary(Opcode::mul, a, b); }
  Register div(Register a, Register b) { return binary(Opcode::div, a, b); }
  Register rem(Register a, Register b) { return binary(Opcode::rem, a, b); }
  Register lt(Register a, Register b) { return compare(Opcode::lt, a, b); }

  // op: thread_id, block_id, block_size, grid_size, global_id; type: u32, i32, u64 or i64.
  Register id(Opcode op, int axis = 0, DType type = DType::u32);

  Register load(Array array, Register index);
  void store(Array array, Register index, Register value);
  Register load(Shared array, Register index);
  void store(Shared array, Register index, Register value);
  // op without the `_shared` suffix; the right one is chosen by the argument.
  Register atomic(Opcode op, Array array, Register index, Register value);
  Register atomic(Opcode op, Shared array, Register index, Register value);
  Register atomic_cas(Array array, Register index, Register expected, Register desired);
  Register atomic_cas(Shared array, Register index, Register expected, Register desired);

  void barrier();
  void fence();
  Register group(Opcode op, Register a);

  void if_(Register condition, FunctionRef<void()> then_body);
  void if_else(Register condition, FunctionRef<void()> then_body, FunctionRef<void()> else_body);
  void for_(Register begin, Register end, Register step, FunctionRef<void(Register)> body);
  void loop(FunctionRef<void()> body);
  void break_();
  void continue_();
  void return_();

  // The same without nesting of callables, for front ends that walk a tree themselves.
  void begin_if(Register condition);
  void begin_else();
  Register begin_for(Register begin, Register end, Register step);
  void begin_loop();
  void end();

  // Verifies and returns the program; the first mistake made while building otherwise.
  Result<Program> finish();

 private:
  Register emit(Instruction instruction, DType result);
  void emit(Instruction instruction);
  void mistake(std::string message);

  Register fresh(DType type);
  bool known(Register r) const { return r.index < program_.registers.size(); }
  // Remembers a mistake unless both are registers of type `type`.
  void expect(Opcode op, DType type, std::initializer_list<Register> operands);
  // What makes the atomic or access of `op` on a global array one on a shared array.
  Opcode shared_form(Opcode op);
  void jump(Opcode op);
  void open(Instruction instruction);

  Program program_;
  std::vector<Opcode> open_;   // if_begin, if_else, for_begin or loop_begin, outermost first
  uint32_t dead_regions_ = 0;  // how many of the innermost open regions are in dead code
  bool dead_ = false;          // after a jump in this region
  std::string first_mistake_;
};

}  // namespace hologram::isa
