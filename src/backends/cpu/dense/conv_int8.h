// Convolutions of 8-bit integers: sums in i32, exact, then as GemmInt8 says (gemm_narrow.h).
//
// The taps of a pixel are a row of bytes, channels of a tap beside each other, put together a tile
// at a time and multiplied by the packed filters; one channel a group (depthwise) is summed
// directly. Images are [batch][channel][row][column], or with channels last where said, which saves
// turning them.
#pragma once

#include <algorithm>

#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/quantize.h"

namespace hologram::backends::dense {

struct ConvInt8Shape {
  size_t batch = 1, channels = 0, height = 1, width = 1;
  size_t filters = 0, groups = 1, kernel_height = 1, kernel_width = 1;
  size_t stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1;
  size_t pad_top = 0, pad_left = 0;
  size_t out_height = 1, out_width = 1;

  size_t taps() const { return kernel_height * kernel_width; }
  size_t depth() const { return channels / groups * taps(); }
  size_t pixels() const { return out_height * out_width; }
  bool depthwise() const {
    return groups == channels && filters == channels && groups > 1 && taps() <= kMaxTaps;
  }
  static constexpr size_t kMaxTaps = 1024;  // of a depthwise convolution, else it is a product
  // Rows of the product are the pixels of the image themselves.
  bool pointwise() const {
    return taps() == 1 && stride_height == 1 && stride_width == 1 && pad_top == 0 &&
           pad_left == 0 && out_height == height && out_width == width;
  }
};

struct ConvInt8 {
  ConvInt8Shape shape;
  const void* x = nullptr;
  bool x_signed = false, x_channels_last = false, y_channels_last = false;
  int32_t x_zero = 0;
  const std::byte* packed_w = nullptr;  // from pack_conv_int8
  // A value a filter, or null; see GemmInt8.
  const int32_t* w_zeros = nullptr;
  const int32_t* bias32 = nullptr;
  const float* scales = nullptr;
  Int8Output output = Int8Output::s32;
  void* y = nullptr;
  Epilogue epilogue;  // without residual
  float output_scale = 1.0f;
  int32_t output_zero = 0, output_low = -128, output_high = 255;

  Quantizer quantizer() const {
    const int32_t low = output == Int8Output::s8 ? -128 : 0;
    return {output_scale, output_zero, std::max(low, output_low), std::min(low + 255, output_high)};
  }
};

// Where the taps of a pixel find their channels, those of an image being last; `edge` beyond it.
void find_taps(const ConvInt8Shape& shape, const uint8_t* image, const uint8_t* edge, size_t pixel,
               const uint8_t** taps);

size_t packed_conv_int8_bytes(const ConvInt8Shape& shape);
// w: [filter][channel of its group][row][column]
void pack_conv_int8(const ConvInt8Shape& shape, const void* w, bool w_signed, std::byte* packed);
size_t conv_int8_scratch_bytes(const ConvInt8& conv);
void conv_int8(const ConvInt8& conv, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
