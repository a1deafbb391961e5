// Runs the ops over rows (runtime/programs/row_table.h): how reductions, softmax and losses are
// done.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/executor.h"
#include "runtime/programs/row_table.h"

namespace hologram::runtime::ops {

// Element j of row i is at address + i * stride + j, in elements.
struct RowArray {
  const void* address = nullptr;
  uint64_t stride = 0;
};

// Rows up to this length are one block's work.
inline constexpr uint64_t kShare = 16384;

// out[r] = the op (sum, mean, min, max, dot) of row r of the inputs, which are of type `type`. A long
// row is cut into shares, whose number depends on its length alone: their results are partial ones
// that a second launch makes one of. So the bits do not depend on threads. `out` must not overlap
// the inputs unless there is one row. min and max need at least one column.
Status reduce_rows(const Executor& executor, RowOp op, DType type, std::span<const RowArray> inputs,
                   uint64_t rows, uint64_t columns, void* out, DType out_type);

// A block a row: softmax and the losses. `out` has a stride too.
Status run_rows(const Executor& executor, RowOp op, DType type, std::span<const RowArray> inputs,
                uint64_t rows, uint64_t columns, RowArray out, DType out_type);

// One row of f32 of at most kShare elements by the library's kernel as it stands, in as few
// nanoseconds as possible. `flat` is OpKernels::flat().
inline Status reduce_flat(const Executor& executor, const backends::Kernel& flat, const void* x,
                          const void* y, void* out, uint64_t columns) {
  uint64_t words[4], *word = words;
  backends::put_word(*word++, x);
  if (y) backends::put_word(*word++, y);
  backends::put_word(*word++, out);
  backends::put_word(*word, columns);
  const uint64_t lengths[4] = {columns, y ? columns : uint64_t{1}, uint64_t{y ? 1u : 0u}, 0};
  return executor.backend().launch_checked(flat, {.grid = {1, 1, 1}, .block = {kRowBlock, 1, 1}},
                                           words, lengths);
}

}  // namespace hologram::runtime::ops
