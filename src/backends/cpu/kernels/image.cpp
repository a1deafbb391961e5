#include "backends/cpu/kernels/image.h"

#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {
namespace {

constexpr Kernel kKernels[] = {
    {"AffineGrid", affine_grid, true}, {"GridSample", grid_sample, true},
    {"ImageDecoder", image_decoder},   {"NonMaxSuppression", non_max_suppression},
    {"RoiAlign", roi_align, true},
};

}  // namespace

std::span<const Kernel> image_kernels() { return kKernels; }

}  // namespace hologram::kernels
