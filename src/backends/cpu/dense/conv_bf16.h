// Convolution of f32 images by bf16 products: one part, or two for nearly f32 (see gemm_narrow.h).
//
// One group, both layouts blocked. The image is taken apart once into planes of 32-channel chunks,
// one for each residue of the stride, with zero margins; a kernel position is then an offset, and
// consecutive pixels are the rows of a matrix product, across the ends of image rows too.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/gemm_narrow.h"

namespace hologram::backends::dense {

struct ConvBf16 {
  ConvShape shape;
  Bf16Parts parts = Bf16Parts::one;
  const float* input = nullptr;
  const std::byte* packed_weights = nullptr;
  float* output = nullptr;
  Epilogue epilogue;
};

bool conv_bf16_supported(const ConvShape& shape);
// packed: panels of 32 outputs as [chunk of 32 inputs][tap][part][16][32][2].
size_t packed_conv_bf16_bytes(const ConvShape& shape, Bf16Parts parts);
void pack_conv_bf16(const ConvShape& shape, Bf16Parts parts, const float* weights,
                    std::byte* packed);
size_t conv_bf16_scratch_bytes(const ConvBf16& conv);
void conv_bf16(const ConvBf16& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
