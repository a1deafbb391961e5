// Convolution with both operands as 16-bit integers (see GemmShorts in gemm_narrow.h), f32 in and
// out. One group, both sides blocked. Scales, and what is not finite, as in conv_digits.h.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

struct ConvShorts {
  ConvShape shape;
  const float* input = nullptr;
  const std::byte* packed_weights = nullptr;
  float* output = nullptr;
  Epilogue epilogue;
};

bool conv_shorts_supported(const ConvShape& shape);
// Whether that may be faster than f32. Of the shape all counts but batch, height and width.
bool conv_shorts_pays(const ConvShape& shape);
// packed: scales of outputs, panels of 32 outputs as [step][16][32][2].
size_t packed_conv_shorts_bytes(const ConvShape& shape);
void pack_conv_shorts(const ConvShape& shape, const float* weights, std::byte* packed);
size_t conv_shorts_scratch_bytes(const ConvShorts& conv);
void conv_shorts(const ConvShorts& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
