// Convolution of signals (one spatial axis, one group, nchw on both sides) whose sums are added in
// the order of ONNX Runtime: channel by channel and within it tap by tap, in the parts of
// ordered.h. As fast as the direct one; what differs is the last bit of a result.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

bool ordered_conv_supported(const ConvShape& shape, Layout input, Layout output);
size_t packed_ordered_conv_bytes(const ConvShape& shape);
void pack_ordered_conv(const ConvShape& shape, const float* weights, float* packed);
size_t ordered_conv_scratch_bytes(const Conv& conv);
void ordered_conv(const Conv& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
