// Activations.
#pragma once

#include "runtime/executor.h"

namespace hologram::runtime::ops {

// max(x, 0), keeping not-a-number. Signed integers and floats.
Status relu(const Executor& executor, const Tensor& x, const Tensor& out);
Result<Tensor> relu(const Executor& executor, const Tensor& x);

// Floats.
Status sigmoid(const Executor& executor, const Tensor& x, const Tensor& out);
Status tanh(const Executor& executor, const Tensor& x, const Tensor& out);
Result<Tensor> sigmoid(const Executor& executor, const Tensor& x);
Result<Tensor> tanh(const Executor& executor, const Tensor& x);
// x / 2 (1 + erf(x / sqrt 2)), the exact form.
Status gelu(const Executor& executor, const Tensor& x, const Tensor& out);
Result<Tensor> gelu(const Executor& executor, const Tensor& x);

// exp(x) / sum of exp(x) along an axis, computed after subtracting the greatest. A row with a
// not-a-number is all not-a-number.
Status softmax(const Executor& executor, const Tensor& x, int64_t axis, const Tensor& out);
Result<Tensor> softmax(const Executor& executor, const Tensor& x, int64_t axis = -1);

}  // namespace hologram::runtime::ops
