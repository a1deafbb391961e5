// Reductions over some axes, or all. Their order is fixed by the shape alone.
#pragma once

#include "runtime/executor.h"

namespace hologram::runtime::ops {

// Which axes; empty means all. `keep` leaves them as dimensions of 1.
struct Axes {
  Dims axes;
  bool keep = false;

  Axes() = default;
  Axes(std::initializer_list<int64_t> which, bool keep_dims = false)
      : axes(which), keep(keep_dims) {}
  Axes(const Dims& which, bool keep_dims = false) : axes(which), keep(keep_dims) {}
};

// Numbers. A sum of integers is i64 or u64 and wraps; a mean of integers is f64. 16-bit floats are
// summed in f32 and rounded once. The sum of nothing is 0, its mean not-a-number, its minimum and
// maximum refused. A not-a-number makes a minimum or maximum one.
Status sum(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out);
Status mean(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out);
Status reduce_min(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out);
Status reduce_max(const Executor& executor, const Tensor& x, const Axes& axes, const Tensor& out);
Result<Tensor> sum(const Executor& executor, const Tensor& x, const Axes& axes = {});
Result<Tensor> mean(const Executor& executor, const Tensor& x, const Axes& axes = {});
Result<Tensor> reduce_min(const Executor& executor, const Tensor& x, const Axes& axes = {});
Result<Tensor> reduce_max(const Executor& executor, const Tensor& x, const Axes& axes = {});

// The type that sum and dot of `type` have, and mean.
constexpr DType sum_type(DType type) {
  if (is_signed_integer(type)) return DType::i64;
  return is_unsigned_integer(type) ? DType::u64 : type;
}
constexpr DType mean_type(DType type) { return is_integer(type) ? DType::f64 : type; }

}  // namespace hologram::runtime::ops
