// The indexing kernels, a file for each direction; indexing.cpp lists them.
#pragma once

#include <span>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// indexing_scatter.cpp: elements to places that an input names.
Status scatter_elements(KernelContext& c);
Status scatter_nd(KernelContext& c);
Status tensor_scatter(KernelContext& c);

// indexing_select.cpp: elements chosen by a condition, and conditions made of indices.
Status compress(KernelContext& c);
Status non_zero(KernelContext& c);
Status one_hot(KernelContext& c);
Status trilu(KernelContext& c);

// The integers of an i32 or i64 tensor as indices of an axis of `size`, negative ones counted from
// the end. Scratch memory; out_of_range where one is outside.
Result<std::span<const int64_t>> read_indices(KernelContext& c, const Tensor& indices,
                                              int64_t size);

// Coordinates of a walk over the elements of a tensor in row-major order.
struct Odometer {
  Dims dims;
  int64_t index[kMaxRank] = {};

  Odometer(const Dims& of, int64_t position) : dims(of) {
    for (size_t axis = dims.rank(); axis-- > 0; position /= dims[axis])
      index[axis] = position % dims[axis];
  }
  void next() {
    for (size_t axis = dims.rank(); axis-- > 0; index[axis] = 0)
      if (++index[axis] < dims[axis]) return;
  }
};

// Where element i of `indices` points in a tensor of `dims`: the coordinates of i, with that of
// `axis` replaced. GatherElements reads there, ScatterElements writes there. Scratch memory.
Result<std::span<const int64_t>> element_offsets(KernelContext& c, const Tensor& indices,
                                                 const Dims& dims, size_t axis);

// Where each tuple of `indices` (its last axis) points in a tensor of `dims`, of which the tuple
// names the axes from `batch` on. Scratch memory. GatherND and ScatterND.
Result<std::span<const int64_t>> tuple_offsets(KernelContext& c, const Tensor& indices,
                                               const Dims& dims, size_t batch);

}  // namespace hologram::kernels
