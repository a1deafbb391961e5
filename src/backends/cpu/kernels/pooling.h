// The families of pools that have files of their own.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// One number from each plane: GlobalAveragePool, GlobalMaxPool, GlobalLpPool.
Status global_average_pool(KernelContext& c);
Status global_max_pool(KernelContext& c);
Status global_lp_pool(KernelContext& c);

// Pools by regions and indices.
Status max_unpool(KernelContext& c);
Status max_roi_pool(KernelContext& c);

}  // namespace hologram::kernels
