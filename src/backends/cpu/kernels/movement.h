// The movement kernels that have files of their own; movement.cpp lists them.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// movement_region.cpp: parts of a tensor, and a tensor as part of a larger one.
Status slice(KernelContext& c);
Status split(KernelContext& c);
Status pad(KernelContext& c);
Status center_crop_pad(KernelContext& c);

// movement_repeat.cpp: elements that appear several times, or in blocks, or backwards.
Status expand(KernelContext& c);
Status tile(KernelContext& c);
Status depth_to_space(KernelContext& c);
Status space_to_depth(KernelContext& c);
Status reverse_sequence(KernelContext& c);

// Integer `index` of an i32 or i64 tensor.
inline int64_t integer_at(const Tensor& tensor, int64_t index) {
  return tensor.dtype == DType::i32 ? tensor.as<int32_t>()[index] : tensor.as<int64_t>()[index];
}

}  // namespace hologram::kernels
