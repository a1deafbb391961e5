// Losses: the mean over all rows or elements, as a tensor without dimensions.
#pragma once

#include "runtime/executor.h"

namespace hologram::runtime::ops {

// Floats. The result has the inputs' type; 16-bit floats are computed in f32 and rounded once.

// Mean of (prediction - target)^2. One shape.
Result<Tensor> mse(const Executor& executor, const Tensor& prediction, const Tensor& target);
// Mean over rows of -log softmax(logits)[target], classes along the last axis. `target` is either
// the classes (i32 or i64, the shape of logits without the last axis) or distributions over them
// (the type and shape of logits).
Result<Tensor> cross_entropy(const Executor& executor, const Tensor& logits, const Tensor& target);
// Mean of -(t log p + (1 - t) log(1 - p)), logarithms held above -100. One shape.
Result<Tensor> binary_cross_entropy(const Executor& executor, const Tensor& probability,
                                    const Tensor& target);

}  // namespace hologram::runtime::ops
