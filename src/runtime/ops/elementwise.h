// Runs an element-wise op on tensors of any layout: how every op of math and activation is done.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/executor.h"
#include "runtime/programs/op_table.h"

namespace hologram::runtime::ops {

// out = op(inputs, scalars). The inputs broadcast to the shape of `out` by NumPy's rules; all have
// one type (`out` the op's result type). `out` may be one of the inputs, or overlap them anyhow.
// Scalars are bits of the inputs' type (of out's, where there is no input).
Status run_elementwise(const Executor& executor, ElementwiseOp op,
                       std::span<const Tensor* const> inputs, std::span<const uint64_t> scalars,
                       const Tensor& out);

// The same into a fresh tensor of the broadcast shape.
Result<Tensor> make_elementwise(const Executor& executor, ElementwiseOp op,
                                std::span<const Tensor* const> inputs,
                                std::span<const uint64_t> scalars);

// Common checks of ops that write to a given tensor.
Status check_output(const Executor& executor, std::string_view op, const Tensor& out, DType type,
                    const Dims& dims);
Status check_input(const Executor& executor, std::string_view op, const Tensor& input);
// Whether they are views of storages that share memory.
bool may_overlap(const Tensor& input, const Tensor& out);

}  // namespace hologram::runtime::ops
