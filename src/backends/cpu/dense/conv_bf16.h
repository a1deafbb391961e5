// Convolution by bf16 products: one part, or two for nearly f32 (see gemm_narrow.h). Images are
// f32; with one part blocked ones may be bf16, each for itself.
//
// One group, a blocked output. A blocked image is taken apart once into planes of 32-channel
// chunks, one for each residue of the stride, with zero margins; a kernel position is then an
// offset, and consecutive pixels are the rows of a matrix product, across the ends of image rows
// too. A 1 x 1 kernel without margins takes pixels apart as it meets them.
//
// An nchw image of at most four channels (a first layer) becomes rows of four values a pixel; a row
// of the kernel is then one run of values, 8 pixels to a chunk, and rows of the product overlap.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/gemm_narrow.h"

namespace hologram::backends::dense {

struct ConvBf16 {
  ConvShape shape;
  Layout input_layout = Layout::blocked;
  Bf16Parts parts = Bf16Parts::one;
  const void* input = nullptr;
  bool input_bf16 = false;
  const std::byte* packed_weights = nullptr;
  void* output = nullptr;
  bool output_bf16 = false;
  Epilogue epilogue;
  const uint16_t* residual_bf16 = nullptr;  // instead of the epilogue's
  size_t in_plane = 0, out_plane = 0;       // see Conv
};

bool conv_bf16_supported(const ConvShape& shape, Layout input = Layout::blocked);
// packed: panels of 32 outputs as [chunk of 32 inputs][tap][part][16][32][2]; for an nchw input
// [kernel row][8 kernel columns of 4 channels each][part][16][32][2].
size_t packed_conv_bf16_bytes(const ConvShape& shape, Bf16Parts parts,
                              Layout input = Layout::blocked);
void pack_conv_bf16(const ConvShape& shape, Bf16Parts parts, const float* weights,
                    std::byte* packed, Layout input = Layout::blocked);
size_t conv_bf16_scratch_bytes(const ConvBf16& conv);
void conv_bf16(const ConvBf16& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
