// Convolution of signals by filters that mirror themselves, as those of a Fourier transform do: tap
// n and tap taps - n are equal (even filters) or opposite (odd ones). The samples they meet are
// added or subtracted first, which leaves half of the products.
//
// The signal has one channel and one row, nothing at its margins, and is plain on both sides
// (signal_conv_supported). Rules of conv.h hold.
#pragma once

#include <optional>

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

// How many of the filters are even, where those come first and all others are odd; nothing where
// one is neither, or there is an odd number of taps. `weights`: [filters][taps].
std::optional<size_t> even_filters(size_t filters, size_t taps, const float* weights);

struct MirrorConv {
  ConvShape shape;
  size_t even = 0;  // the first so many filters; at most all
  const float* input = nullptr;
  const float* packed_weights = nullptr;
  float* output = nullptr;
  Epilogue epilogue;  // neither residual nor program
};

// Of the shape's kernel_width, an even number, and out_channels alone.
size_t packed_mirror_conv_bytes(const ConvShape& shape, size_t even);
void pack_mirror_conv(const ConvShape& shape, size_t even, const float* weights, float* packed);
size_t mirror_conv_scratch_bytes(const MirrorConv& conv);
void mirror_conv(const MirrorConv& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
