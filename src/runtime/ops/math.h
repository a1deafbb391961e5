// Element-wise arithmetic.
#pragma once

#include "runtime/executor.h"
#include "runtime/ops/scalar.h"

namespace hologram::runtime::ops {

// a op b, broadcast. Integers wrap; an integer division by zero is a trap, what was written until
// then stays. min and max of a not-a-number are not-a-number. An integer power with a negative
// exponent is that of 1 / base, rounded to zero.
Status add(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Status sub(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Status mul(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Status div(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Status min(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Status max(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Status pow(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out);
Result<Tensor> add(const Executor& executor, const Tensor& a, const Tensor& b);
Result<Tensor> sub(const Executor& executor, const Tensor& a, const Tensor& b);
Result<Tensor> mul(const Executor& executor, const Tensor& a, const Tensor& b);
Result<Tensor> div(const Executor& executor, const Tensor& a, const Tensor& b);
Result<Tensor> min(const Executor& executor, const Tensor& a, const Tensor& b);
Result<Tensor> max(const Executor& executor, const Tensor& a, const Tensor& b);
Result<Tensor> pow(const Executor& executor, const Tensor& a, const Tensor& b);

// Signed integers and floats.
Status abs(const Executor& executor, const Tensor& x, const Tensor& out);
Status neg(const Executor& executor, const Tensor& x, const Tensor& out);
Result<Tensor> abs(const Executor& executor, const Tensor& x);
Result<Tensor> neg(const Executor& executor, const Tensor& x);
// Floats. rsqrt is 1 / sqrt(x).
Status sqrt(const Executor& executor, const Tensor& x, const Tensor& out);
Status rsqrt(const Executor& executor, const Tensor& x, const Tensor& out);
Result<Tensor> sqrt(const Executor& executor, const Tensor& x);
Result<Tensor> rsqrt(const Executor& executor, const Tensor& x);

// The scalar must be a value of the tensor's type; floats round it.
Status scalar_add(const Executor& executor, const Tensor& x, Scalar value, const Tensor& out);
Status scalar_mul(const Executor& executor, const Tensor& x, Scalar value, const Tensor& out);
Result<Tensor> scalar_add(const Executor& executor, const Tensor& x, Scalar value);
Result<Tensor> scalar_mul(const Executor& executor, const Tensor& x, Scalar value);
// min(max(x, low), high)
Status clip(const Executor& executor, const Tensor& x, Scalar low, Scalar high, const Tensor& out);
Result<Tensor> clip(const Executor& executor, const Tensor& x, Scalar low, Scalar high);
// a x + y, the product and the sum rounded apart.
Status axpy(const Executor& executor, Scalar a, const Tensor& x, const Tensor& y,
            const Tensor& out);
Result<Tensor> axpy(const Executor& executor, Scalar a, const Tensor& x, const Tensor& y);

}  // namespace hologram::runtime::ops
