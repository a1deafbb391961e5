// Image operators that have files of their own.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

Status affine_grid(KernelContext& c);
Status grid_sample(KernelContext& c);
Status non_max_suppression(KernelContext& c);
Status roi_align(KernelContext& c);
Status image_decoder(KernelContext& c);

}  // namespace hologram::kernels
