// Runs the ops over rows (runtime/programs/row_table.h): how reductions, softmax and losses are
// done.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "backends/direct_block.h"
#include "runtime/executor.h"
#include "runtime/ops/op_kernels.h"
#include "runtime/programs/row_table.h"

namespace hologram::runtime::ops {

// Element j of row i is at address + i * stride + j, in elements.
struct RowArray {
  const void* address = nullptr;
  uint64_t stride = 0;
};

// Rows up to this length are one block's work.
inline constexpr uint64_t kShare = 16384;
static_assert(backends::kDirectBlock == kRowBlock);

// out[r] = the op (sum, mean, min, max, dot) of row r of the inputs, which are of type `type`. A
// long row is cut into shares, whose number depends on its length alone: their results are partial
// ones that a second launch makes one of. So the bits do not depend on threads. `out` must not
// overlap the inputs unless there is one row. min and max need at least one column.
Status reduce_rows(const Executor& executor, RowOp op, DType type, std::span<const RowArray> inputs,
                   uint64_t rows, uint64_t columns, void* out, DType out_type);

// A block a row: softmax and the losses. `out` has a stride too.
Status run_rows(const Executor& executor, RowOp op, DType type, std::span<const RowArray> inputs,
                uint64_t rows, uint64_t columns, RowArray out, DType out_type);

// One row of f32, of 1 to kShare elements, by the library's kernel as it stands, in as few
// nanoseconds as possible. `flat` is OpKernels::loaded_flat().
template <size_t kInputs>
[[gnu::always_inline]] inline Status reduce_flat(const OpKernels::Slot& flat,
                                                 const std::array<const void*, kInputs>& inputs,
                                                 void* out, uint64_t columns) {
  backends::DirectLaunch& direct = backends::DirectLaunch::mine(kInputs + 2);
  uint64_t* const words = direct.words_of(kInputs + 2);
  for (size_t i = 0; i < kInputs; ++i) backends::put_word(words[i], inputs[i]);
  backends::put_word(words[kInputs], out);
  backends::put_word(words[kInputs + 1], columns);
  const uint32_t trap = backends::run_direct_block(flat.direct, direct);
  return trap == isa::kTrapNone ? Status() : flat.kernel.load()->trapped(trap);
}

}  // namespace hologram::runtime::ops
