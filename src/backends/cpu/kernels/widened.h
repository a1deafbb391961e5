// Half types for kernels that are written for f32: their inputs arrive as f32 and what they make
// leaves as f16 or bf16.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// Whether an input or output is of a half type.
bool has_halves(const KernelContext& context);
Status run_widened(const Kernel& kernel, KernelContext& context);

}  // namespace hologram::kernels
