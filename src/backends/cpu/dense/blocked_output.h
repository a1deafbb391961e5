// BlockedOutput: where the sums of a convolution go, through its epilogue into a blocked image of
// f32 or bf16.
//
// Internal to convolutions by narrow products.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/conv.h"
#include "backends/cpu/dense/direct_epilogue.h"
#include "backends/cpu/dense/tile.h"

namespace hologram::backends::dense {

class BlockedOutput {
 public:
  struct Target {
    void* image = nullptr;
    bool bf16 = false;
    Epilogue epilogue;
    const uint16_t* residual_bf16 = nullptr;  // instead of the epilogue's
    size_t plane = 0;                         // values from block to block; 0: the shape's
  };
  // `bias` is memory for padded_bias_bytes(); all of it is borrowed for as long as this lives.
  BlockedOutput(const ConvShape& shape, const Target& target, float* bias);

  // Of `count` pixels of a sample from `pixel` on, the channels from `column` on. Their sums lie
  // `width` floats apart and are rewritten.
  void finish(size_t sample, size_t pixel, size_t count, size_t column, float* sums,
              size_t width) const;

 private:
  Target target_;
  size_t block_, sample_, outputs_;
  bool local_;  // values pass through memory of the thread that finishes them
  detail::FinishFunction quick_ = nullptr;
  ClipRange clip_;
  float slope_ = 1.0f;  // of negative values
  TileKernel kernel_ = tile_kernel();
};

}  // namespace hologram::backends::dense
