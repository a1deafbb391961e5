// Reductions over contiguous rows: sum, mean, min, max, and the dot product of two rows.
//
// The tree is fixed by the number of elements alone: runs of kRun elements, runs gathered into
// chunks, chunks folded in pairs. Which thread does which chunk changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/dtype.h"

namespace hologram::backends {

enum class ReduceOp : uint8_t { sum, mean, min, max, dot };

// One op on one type, compiled for this CPU. Accumulators are at most 8 bytes.
struct ReduceKernel {
  // *accumulator = reduction of `count` > 0 elements of x (and y, for dot).
  void (*chunk)(const void* x, const void* y, size_t count, void* accumulator);
  // *accumulator = *accumulator with *next
  void (*combine)(void* accumulator, const void* next);
  // *out = the result over `count` elements in all.
  void (*finish)(const void* accumulator, uint64_t count, void* out);
  uint32_t element_size;
  uint32_t out_size;
};

// The type of the result: i64 or u64 for sums and dot products of integers, f64 for their means,
// the elements' own type otherwise.
DType reduced_type(ReduceOp op, DType type);

const ReduceKernel& reduce_kernel(ReduceOp op, DType type);

}  // namespace hologram::backends
