// Kernels of the attention family that have files of their own.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

Status linear_attention(KernelContext& c);
Status rotary_embedding(KernelContext& c);

}  // namespace hologram::kernels
