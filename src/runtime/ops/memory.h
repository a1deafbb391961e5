// Copying and filling, for every element type of whole bytes.
#pragma once

#include "runtime/executor.h"
#include "runtime/ops/scalar.h"

namespace hologram::runtime::ops {

// Elements of `from`, broadcast, into `to`; one type. They may overlap.
Status copy(const Executor& executor, const Tensor& from, const Tensor& to);
// Every element of `out`.
Status fill(const Executor& executor, const Tensor& out, Scalar value);
Result<Tensor> full(const Executor& executor, DType type, const Dims& dims, Scalar value);

}  // namespace hologram::runtime::ops
