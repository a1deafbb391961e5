// Pooling in f32 over two spatial dimensions (one dimension: height 1), nchw and blocked (conv.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

enum class PoolKind : unsigned char { max, average };

struct Pool {
  PoolKind kind = PoolKind::max;
  Layout layout = Layout::nchw;
  size_t batch = 1, channels = 0;
  size_t in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  size_t kernel_height = 1, kernel_width = 1;
  size_t stride_height = 1, stride_width = 1;
  size_t pad_top = 0, pad_left = 0;
  size_t pad_bottom = 0, pad_right = 0;  // read by include_pad only
  size_t dilation_height = 1, dilation_width = 1;
  // An average divides by the window's cells inside the input, or, with include_pad, inside the
  // padded input.
  bool include_pad = false;
  const float* x = nullptr;
  float* y = nullptr;
  // Instead of x and y, both or neither: blocked images of bf16.
  const uint16_t* x_bf16 = nullptr;
  uint16_t* y_bf16 = nullptr;
};

// A window with no cell inside the input gives -infinity (max) or 0 (average).
void pool(const Pool& pool, ThreadPool& threads);

// Mean over all pixels: y[n][c]. The blocked result is [n][channel block][16].
void global_average(Layout layout, size_t batch, size_t channels, size_t pixels, const float* x,
                    float* y, ThreadPool& threads);
// The same of a blocked image of bf16.
void global_average_bf16(size_t batch, size_t channels, size_t pixels, const uint16_t* x, float* y,
                         ThreadPool& threads);

}  // namespace hologram::backends::dense
