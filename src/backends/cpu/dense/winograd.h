// Winograd's convolution of 3x3 kernels with stride 1, both layouts blocked. Called through conv().
//
// Outputs are computed in squares of 4 x 4 from squares of 6 x 6 inputs:
//   Y = A^T [ (G g G^T) * (B^T d B) ] A,   the product by elements summed over input channels,
// which is 36 matrix products of [square][input channel] by [input channel][output channel]. The
// kernels' polynomials are evaluated at 0, +-5/8, +-3/2 and infinity, which round far less than the
// usual +-1, +-2. The divisors that belong to G are in A, where no constant is rounded. Products
// are summed in parts of 16 channels.
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

constexpr bool is_winograd(const ConvShape& s) {
  return s.kernel_height == 3 && s.kernel_width == 3 && s.stride_height == 1 &&
         s.stride_width == 1 && s.dilation_height == 1 && s.dilation_width == 1 && s.groups == 1;
}

// Weights: [panel of 32 outputs][input][9][32], the last panel 16 wide where that is enough.
size_t packed_winograd_bytes(const ConvShape& shape);
void pack_winograd(const ConvShape& shape, const float* weights, float* packed);
size_t winograd_scratch_bytes(const Conv& conv);
void winograd(const Conv& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
