// Generator: draws one program, statement by statement. How it keeps its word:
// - races: a thread stores only at places of its own; shared memory is written and read in phases
//   with barriers between; each array of atomics sees one operation whose order does not show;
// - traps: divisors are odd, shift amounts masked, indices taken modulo the length;
// - ends: loops count to a small number;
// - barriers: only where the generator has stayed in uniform control flow.
#pragma once

#include <array>
#include <vector>

#include "isa/builder.h"
#include "isa/testing/random.h"
#include "isa/testing/random_program.h"

namespace hologram::isa::testing {

class Generator {
 public:
  Generator(uint64_t seed, FloatMode mode);
  RandomCase draw();

 private:
  static constexpr uint32_t kSlots = 4;  // elements of an output array a thread owns

  struct Input {
    Builder::Array array;
    uint32_t count;
  };
  struct Atomic {
    Builder::Array array;
    Opcode op;
    uint32_t count;
  };

  // Frame: parameters, shape, where a thread is.
  void draw_shape();
  void declare();
  void prologue();
  void epilogue();
  Builder::Array add_array(std::string name, DType type, Access access, uint64_t count,
                           Opcode function = Opcode::mov);
  Builder::Scalar add_scalar(std::string name, DType type);

  // Statements.
  void statements(unsigned count);
  void statement();
  void divergent_if();
  void counted_loop();
  void open_loop();
  void uniform_region();
  void shared_phase();
  void shared_atomics();
  void group_reduction();
  void global_atomic();
  void own_atomic();
  void store_output();
  void math_result();
  template <typename Body>
  void scope(Body&& body);

  // Values. operation() adds one to the pool.
  void operation();
  void apply(Opcode op);
  Register value(DType type);
  Register fresh_value(DType type);
  Register uniform_value(DType type);
  Register condition();
  Register index_below(uint32_t count);
  Register no_nan(Register r);
  Register keep(Register r);
  void absorb(Register r);
  DType draw_type(Opcode op);

  Random random_;
  FloatMode mode_;
  Builder b_;
  RandomCase case_;
  uint32_t threads_ = 0;        // of the launch
  uint32_t block_threads_ = 0;  // of a block
  std::vector<DType> types_;    // that this program works with
  std::vector<Input> inputs_;
  std::vector<Builder::Array> outputs_;
  std::vector<Atomic> atomics_;
  std::vector<Builder::Scalar> scalars_;
  std::vector<Builder::Shared> shared_;         // block_threads_ elements each
  std::vector<Builder::Shared> shared_counts_;  // for atomics
  std::array<std::vector<Register>, 13> pool_;  // type -> values in scope
  std::vector<Register> variables_;             // also in the pool; may be assigned
  Register checksum_;                           // u64, in each thread
  Register self_, lane_, self_base_;            // u32: thread in launch, in block, first slot
  unsigned depth_ = 0;
  unsigned loops_ = 0;
  bool uniform_ = true;      // every thread of the block is here
  bool may_return_ = false;  // no barrier comes any more
  unsigned functions_ = 0;   // outputs of mathematical functions so far
};

}  // namespace hologram::isa::testing
