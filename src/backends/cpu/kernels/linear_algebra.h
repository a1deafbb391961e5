// Kernels of linear algebra that have files of their own.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

Status einsum(KernelContext& c);

}  // namespace hologram::kernels
