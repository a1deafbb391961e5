// Signal operators that have files of their own.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

Status hann_window(KernelContext& c);
Status hamming_window(KernelContext& c);
Status blackman_window(KernelContext& c);
Status mel_weight_matrix(KernelContext& c);

// The one integer of input `index`.
Result<int64_t> scalar_integer(const KernelContext& c, size_t index, std::string_view name);

}  // namespace hologram::kernels
