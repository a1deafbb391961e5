// The families of pools that have files of their own.
#pragma once

#include "backends/cpu/dense/pool.h"
#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/window.h"

namespace hologram::kernels {

// A window of one or two axes as the dense kernels take it, with the attribute count_include_pad;
// kind, layout and data are the caller's to set.
backends::dense::Pool dense_pool(const KernelContext& c, const Window& w, int64_t batch,
                                 int64_t channels);

// One number from each plane: GlobalAveragePool, GlobalMaxPool, GlobalLpPool.
Status global_average_pool(KernelContext& c);
Status global_max_pool(KernelContext& c);
Status global_lp_pool(KernelContext& c);

// Pools by regions and indices.
Status max_unpool(KernelContext& c);
Status max_roi_pool(KernelContext& c);

}  // namespace hologram::kernels
