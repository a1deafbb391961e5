// Convolution of signals by bf16 products: one channel, one row, nothing at its margins, plain on
// both sides (the frames of a spectrogram). Windows of the signal are the rows of a matrix product,
// `stride` values apart, and never copied as f32.
//
// Rules of conv.h hold.
#pragma once

#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/gemm_narrow.h"

namespace hologram::backends::dense {

struct SignalConv {
  ConvShape shape;
  Bf16Parts parts = Bf16Parts::one;
  const float* input = nullptr;
  const std::byte* packed_weights = nullptr;
  float* output = nullptr;
  Epilogue epilogue;  // neither residual nor program
};

bool signal_conv_supported(const ConvShape& shape);
// Of the shape's kernel_width and out_channels alone.
size_t packed_signal_conv_bytes(const ConvShape& shape, Bf16Parts parts);
void pack_signal_conv(const ConvShape& shape, Bf16Parts parts, const float* weights,
                      std::byte* packed);
size_t signal_conv_scratch_bytes(const SignalConv& conv);
void signal_conv(const SignalConv& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
