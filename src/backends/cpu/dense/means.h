// The mean of each channel of blocked images (conv.h), summed in f64: what is computed from a mean
// is often shared by all pixels, and so would its error be.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

struct BlockMeans {
  size_t planes = 0, pixels = 0;     // a plane is a block of 16 channels of a sample
  const float* x = nullptr;          // [planes][pixels][16]
  const uint16_t* x_bf16 = nullptr;  // instead of x
  // [planes][16], one of the two.
  double* y = nullptr;
  float* y_rounded = nullptr;
};

void block_means(const BlockMeans& means, ThreadPool& threads);

}  // namespace hologram::backends::dense
