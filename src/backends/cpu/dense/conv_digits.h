// Convolution with both operands as 16-bit integers of two 8-bit digits (see GemmDigits in
// gemm_narrow.h), f32 in and out. One group, both sides blocked.
//
// Weights have a scale an output channel. A 1 x 1 kernel without margins has a scale a pixel; other
// kernels add up pixels, so all of a sample's image has one, from its largest value. An element
// keeps 15 bits of that: where most of an image is far below it, two bf16 parts keep more.
//
// What is not finite makes results NaN: all of an output channel for a weight; of a sample for a
// value of its image, or just the pixel's where the kernel is 1 x 1.
//
// The image is taken apart once: see digit_image.h.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

struct ConvDigits {
  ConvShape shape;
  const float* input = nullptr;
  const std::byte* packed_weights = nullptr;
  float* output = nullptr;
  Epilogue epilogue;
};

bool conv_digits_supported(const ConvShape& shape);
// Whether tiles (AMX) should be faster by digits than by two bf16 parts. Of the shape all counts
// but batch, height and width.
bool conv_digits_pays(const ConvShape& shape);
// packed: scales of outputs, panels of 32 outputs as [step][digit][16][32][4].
size_t packed_conv_digits_bytes(const ConvShape& shape);
void pack_conv_digits(const ConvShape& shape, const float* weights, std::byte* packed);
size_t conv_digits_scratch_bytes(const ConvDigits& conv);
void conv_digits(const ConvDigits& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
