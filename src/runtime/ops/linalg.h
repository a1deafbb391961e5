// Products of matrices and vectors. All number types; integers wrap, 16-bit floats are summed in
// f32 and rounded once.
#pragma once

#include "runtime/executor.h"
#include "runtime/ops/scalar.h"

namespace hologram::runtime::ops {

// out = alpha a b + beta out for a[m, k], b[k, n], out[m, n]. A transposed operand is a view
// (Tensor::transpose) and costs nothing. With beta = 0, out is not read.
Status gemm(const Executor& executor, const Tensor& a, const Tensor& b, const Tensor& out,
            Scalar alpha = 1, Scalar beta = 0);
Result<Tensor> gemm(const Executor& executor, const Tensor& a, const Tensor& b);

// a[m, k] x[k] -> [m]
Status matvec(const Executor& executor, const Tensor& a, const Tensor& x, const Tensor& out);
Result<Tensor> matvec(const Executor& executor, const Tensor& a, const Tensor& x);

// sum of x[i] y[i] -> a tensor without dimensions, of the type that a sum has.
Status dot(const Executor& executor, const Tensor& x, const Tensor& y, const Tensor& out);
Result<Tensor> dot(const Executor& executor, const Tensor& x, const Tensor& y);

}  // namespace hologram::runtime::ops
