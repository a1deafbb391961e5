// Depthwise convolution: one kernel a channel. Called through conv().
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

constexpr bool is_depthwise(const ConvShape& s) {
  return s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels;
}

// Weights: [channel block][kernel_height][kernel_width][16].
size_t packed_depthwise_bytes(const ConvShape& shape);
void pack_depthwise(const ConvShape& shape, const float* weights, float* packed);
size_t depthwise_scratch_bytes(const Conv& conv);
void depthwise(const Conv& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
