// Softmax and cross-entropy of one contiguous row, for f16, bf16, f32 and f64.
#pragma once

#include <cstddef>

#include "support/dtype.h"

namespace hologram::backends {

// The 16-bit floats are computed in f32; a loss is f32 for them. Rows have at least one element.
struct SoftmaxKernel {
  void (*softmax)(const void* x, void* out, size_t count);
  // -log softmax(logits)[target]
  void (*class_loss)(const void* logits, size_t count, size_t target, void* loss);
  // -sum of target[i] log softmax(logits)[i]
  void (*distribution_loss)(const void* logits, const void* target, size_t count, void* loss);
};

const SoftmaxKernel& softmax_kernel(DType type);

}  // namespace hologram::backends
