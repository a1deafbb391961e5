// Convolution with both operands as 8-bit integers, f32 or bf16 images in and out. One group, both
// sides blocked.
//
// Weights have a scale an output channel. The image becomes unsigned bytes by a scale and a zero
// point: of each pixel where the kernel is 1 x 1 without margins, of a sample otherwise. That is
// 8 bits of the range of what shares a scale, where bf16 has 8 bits of each value; it takes half
// the products and half the bytes of weights.
//
// What is not finite makes results NaN: all of an output channel for a weight; of a sample for a
// value of its image, or just the pixel's where the kernel is 1 x 1.
//
// The image is taken apart once: see digit_image.h. Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

struct ConvBytes {
  ConvShape shape;
  const void* input = nullptr;
  bool input_bf16 = false;
  const std::byte* packed_weights = nullptr;
  void* output = nullptr;
  bool output_bf16 = false;
  Epilogue epilogue;
  const uint16_t* residual_bf16 = nullptr;  // instead of the epilogue's
};

bool conv_bytes_supported(const ConvShape& shape);
// Whether it takes fewer products than bf16: not of few channels, most of which would be zeros. Of
// the shape all counts but batch, height and width.
bool conv_bytes_pays(const ConvShape& shape);
// packed: scales of outputs, sums of their weights, panels of 32 outputs as [step][16][32][4].
size_t packed_conv_bytes_bytes(const ConvShape& shape);
void pack_conv_bytes(const ConvShape& shape, const float* weights, std::byte* packed);
size_t conv_bytes_scratch_bytes(const ConvBytes& conv);
void conv_bytes(const ConvBytes& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
