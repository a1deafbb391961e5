// Depthwise convolution: one kernel a channel. Called through conv().
#pragma once

#include "backends/cpu/dense/conv.h"

namespace hologram::backends::dense {

constexpr bool is_depthwise(const ConvShape& s) {
  return s.groups > 1 && s.groups == s.in_channels && s.groups == s.out_channels;
}

// Weights: [channel block][kernel_height][kernel_width][16].
size_t packed_depthwise_bytes(const ConvShape& shape);
void pack_depthwise(const ConvShape& shape, const float* weights, float* packed);
size_t depthwise_scratch_bytes(const Conv& conv);
void depthwise(const Conv& conv, std::byte* scratch, ThreadPool& pool);

// Rows of a depthwise convolution, for who has rows of its input before there is an image of them.
struct DepthwiseRow;
class DepthwiseRows {
 public:
  // Borrows both; the scratch, of depthwise_scratch_bytes(), is filled here.
  DepthwiseRows(const Conv& conv, std::byte* scratch);
  // Writes rows y..y+count of a channel block. `input` is where the first row of the block's input
  // [height][width][16] lies, or would lie if it were there; f32, or bf16 if the convolution's is.
  void run(size_t sample, size_t block, size_t y, size_t count, const void* input) const;

 private:
  const Conv& conv_;
  void (*run_)(DepthwiseRow row, size_t count);
  const float *bias_ = nullptr, *start_ = nullptr;  // a value a lane, or null
};

}  // namespace hologram::backends::dense
