// Moving elements: permutations, strided copies (concat and split), gathers. Element sizes are 1,
// 2, 4 or 8 bytes. Inputs and outputs do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

inline constexpr size_t kMaxPermuteRank = 16;

// y has dims[order[0]] x dims[order[1]] x ...; y[i_order...] = x[i...]. Both dense. At most
// kMaxPermuteRank dimensions.
void permute(std::span<const size_t> dims, std::span<const size_t> order, size_t element_bytes,
             const void* x, void* y, ThreadPool& pool);

// `count` runs of `bytes` from x (x_stride bytes apart) to y (y_stride bytes apart): one input of a
// concat, one output of a split.
void copy_runs(size_t count, size_t bytes, const void* x, size_t x_stride, void* y, size_t y_stride,
               ThreadPool& pool);

// y[o][i] = x[o][indices[i]]: `outer` tables of `rows` rows of `row_bytes`. Negative indices count
// from the end. Returns false, with y unspecified, if an index is out of range.
bool gather_rows(size_t outer, size_t rows, size_t row_bytes, const void* x,
                 std::span<const int64_t> indices, void* y, ThreadPool& pool);

}  // namespace hologram::backends::dense
