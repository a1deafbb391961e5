// Pointwise: runs a straight-line ISA program over broadcast tensors, block by block.
//
// The program's arrays are its operands: first the inputs (read), then the outputs (write). Thread
// i loads element i of each input and stores element i of each output; the runner turns
// broadcasting into dense blocks, so the program never sees a stride. Without native code each
// instruction is one of the interpreter's lane kernels over a block that stays in cache, so the
// results are the interpreter's bit for bit.
//
// Native code of the program may be attached, in variants: `uniform` says which inputs are one
// element for a whole call (loads at index 0). Runs of elements over which every input is whole or
// one element are then one call each; for everything else there is the variant of no uniform input,
// over blocks into which broadcast inputs are spread. Every element is computed by itself, so the
// bits do not depend on how many threads there are or where work is cut.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/kernels/tensor.h"
#include "isa/lanes/lanes.h"
#include "isa/native_abi.h"
#include "isa/program.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::kernels {

class Pointwise {
 public:
  // Elements evaluated together: a few registers of them stay in the first-level cache.
  static constexpr int64_t kBlock = 256;
  // Registers alive at once; fusion stops before a program needs more.
  static constexpr uint32_t kMaxSlots = 40;
  static constexpr size_t kMaxInputs = 32;
  // Runs that are shorter than this are not worth a call each.
  static constexpr int64_t kShortRun = 32;

  // unsupported when the program is not of the form above.
  static Result<Pointwise> prepare(const isa::Program& program);

  size_t input_count() const { return input_count_; }
  size_t output_count() const { return types_.size() - input_count_; }
  DType input_type(size_t index) const { return types_[index]; }
  DType output_type(size_t index) const { return types_[input_count_ + index]; }

  // Adds native code of the program that reads the inputs of `uniform` (bit k: input k) at index 0.
  // It needs no scratch memory and outlives this object.
  void attach(uint32_t uniform, isa::NativeEntry entry) { native_.push_back({uniform, entry}); }
  bool has_native() const { return !native_.empty(); }

  // Every output has `dims`, to which every input's dimensions broadcast.
  Status run(std::span<const Tensor> inputs, std::span<const Tensor> outputs, const Dims& dims,
             ThreadPool& threads) const;

 private:
  struct Step {
    isa::Instruction instruction;
    isa::LaneKernel kernel = nullptr;  // null: load, store, immediate, bitcast
    uint32_t dst, a, b, c;             // slots
    bool copied;                       // load: into its slot, even where it could be read in place
  };
  struct Native {
    uint32_t uniform;
    isa::NativeEntry entry;
  };
  struct Operand;
  class NativeRun;
  Status run_range(std::span<const Operand> inputs, std::span<const Tensor> outputs, int64_t begin,
                   int64_t end) const;
  // Nothing where no variant fits.
  std::optional<Status> run_native(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                                   const Dims& dims, ThreadPool& threads) const;

  std::vector<Step> steps_;
  std::vector<Native> native_;
  std::vector<DType> types_;  // of the inputs, then of the outputs
  size_t input_count_ = 0;
  uint32_t slots_ = 0;
};

// NumPy's broadcasting over any number of operands.
Result<Dims> broadcast_dims(const Dims& a, const Dims& b);

}  // namespace hologram::kernels
