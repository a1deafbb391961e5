// Strided: a tensor seen through strides, and its copy into dense memory. Slices, transpositions,
// repetitions and block rearrangements are all one of these.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/dims.h"
#include "support/thread_pool.h"

namespace hologram::kernels {

struct Strided {
  // A repetition of a tensor of full rank has an axis more for each of its own.
  static constexpr size_t kMaxAxes = 2 * kMaxRank;
  int64_t dims[kMaxAxes], strides[kMaxAxes];
  size_t rank = 0;
  int64_t offset = 0;  // of the first element

  // The next inner axis. Axes that continue one another become one. At most kMaxAxes calls.
  void push(int64_t dim, int64_t stride) {
    if (dim == 1) return;
    if (rank > 0 && strides[rank - 1] == stride * dim) {
      dims[rank - 1] *= dim;
      strides[rank - 1] = stride;
      return;
    }
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  int64_t count() const {
    int64_t count = 1;
    for (size_t axis = 0; axis < rank; ++axis) count *= dims[axis];
    return count;
  }
};

// Positions of a walk over all but the last `inner` axes, in order.
struct StridedWalk {
  const Strided& view;
  size_t axes;
  int64_t index[Strided::kMaxAxes], offset;

  StridedWalk(const Strided& v, size_t inner, int64_t position)
      : view(v), axes(v.rank - inner), offset(v.offset) {
    for (size_t axis = axes; axis-- > 0;) {
      index[axis] = position % view.dims[axis];
      position /= view.dims[axis];
      offset += index[axis] * view.strides[axis];
    }
  }
  void next() {
    for (size_t axis = axes; axis-- > 0;) {
      offset += view.strides[axis];
      if (++index[axis] < view.dims[axis]) return;
      offset -= view.dims[axis] * view.strides[axis];
      index[axis] = 0;
    }
  }
};

// out[i] = element i of the view of `in`, in row-major order.
template <typename T>
void copy_strided(const T* in, const Strided& view, T* out, ThreadPool& threads) {
  const int64_t total = view.count();
  if (total == 0) return;
  if (view.rank == 0) {
    *out = in[view.offset];
    return;
  }
  const int64_t run = view.dims[view.rank - 1], stride = view.strides[view.rank - 1];
  const int64_t rows = total / run;
  constexpr int64_t kPiece = 16 * 1024;
  threads.parallel_for(rows, std::max<int64_t>(1, kPiece / run), [&](size_t begin, size_t end) {
    StridedWalk walk(view, 1, static_cast<int64_t>(begin));
    T* to = out + static_cast<int64_t>(begin) * run;
    for (size_t row = begin; row < end; ++row, to += run, walk.next()) {
      const T* from = in + walk.offset;
      if (stride == 1)
        std::copy_n(from, run, to);
      else if (stride == 0)
        std::fill_n(to, run, *from);
      else
        for (int64_t i = 0; i < run; ++i) to[i] = from[i * stride];
    }
  });
}

}  // namespace hologram::kernels
