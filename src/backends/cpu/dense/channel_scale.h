// Several blocked images (conv.h) side by side along their channels, times a number a channel, plus
// a number a channel, through an activation, in one pass: what is left of batch normalisation after
// a concatenation, and the gate of squeeze-and-excitation, also where the image is added again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

struct ChannelScale {
  static constexpr size_t kMostParts = 64;
  struct Part {
    const float* x;
    size_t blocks;                     // of 16 channels
    const uint16_t* x_bf16 = nullptr;  // instead of x
  };
  std::array<Part, kMostParts> parts;
  size_t part_count = 0;
  size_t batch = 1, pixels = 0;
  const float* scale = nullptr;  // a value a channel, or null for 1
  // What rounding took from scale, of its sign, or null; without a bias. bf16 leaves it out.
  const float* scale_rest = nullptr;
  bool plus_one = false;        // y = x + x * scale, and no bias
  size_t scale_batch = 0;       // floats from a sample's scales to the next's; 0: shared
  const float* bias = nullptr;  // a value a channel, or null for 0
  Activation activation = Activation::none;
  float first = 0.0f, second = 0.0f;
  uint16_t* y_bf16 = nullptr;  // instead of y
  float* y = nullptr;          // [batch][all blocks][pixels][16]; may be the only part
};

void channel_scale(const ChannelScale& scale, ThreadPool& pool);

}  // namespace hologram::backends::dense
