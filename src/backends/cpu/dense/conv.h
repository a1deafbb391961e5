// Convolution in f32 over two spatial dimensions (one dimension: height 1).
//
// Layouts: `nchw`, and `blocked`: [n][ceil(c / 16)][h][w][16], the channel-blocked layout. Lanes of
// the last block beyond c are unspecified and never change a result. The block is 16 on every CPU
// level, so one archive serves all of them.
//
// Rules of gemm.h hold: borrowed pointers, caller's scratch, the same bits for every thread count
// and batch. Input and output may not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

inline constexpr size_t kChannelBlock = 16;
constexpr size_t channel_blocks(size_t channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock;
}

enum class Layout : uint8_t { nchw, blocked };

// How a convolution is computed; part of the shape, because it decides the form of the weights.
enum class ConvAlgorithm : uint8_t {
  direct,    // sums in the order of the definition
  winograd,  // 3x3, stride 1, one group, blocked: 4x4 outputs from 6x6 products (4 times fewer)
  ordered,   // one spatial axis, one group, nchw: sums in the order of ONNX Runtime
};

struct ConvShape {
  size_t batch = 1;
  size_t in_channels = 0, in_height = 1, in_width = 1;
  size_t out_channels = 0, out_height = 1, out_width = 1;
  size_t kernel_height = 1, kernel_width = 1;
  size_t stride_height = 1, stride_width = 1;
  size_t pad_top = 0, pad_left = 0;  // what lies beyond the bottom and right edges is zero as well
  size_t dilation_height = 1, dilation_width = 1;
  size_t groups = 1;
  ConvAlgorithm algorithm = ConvAlgorithm::direct;
};

// The fastest for this shape with both layouts blocked. Winograd's errors against exact sums are
// 2e-6 of the output's range at 512 channels (direct: 1e-6).
ConvAlgorithm best_conv_algorithm(const ConvShape& shape);

// out = (in + pads - dilation * (kernel - 1) - 1) / stride + 1
constexpr size_t conv_output_size(size_t in, size_t pads, size_t kernel, size_t stride,
                                  size_t dilation) {
  const size_t reach = dilation * (kernel - 1) + 1;
  return in + pads < reach ? 0 : (in + pads - reach) / stride + 1;
}

// A blocked output of a grouped convolution needs groups of whole blocks; other algorithms than the
// direct one need what they say. Everything else is supported.
bool conv_supported(const ConvShape& shape, Layout input, Layout output);

// Weights come as [out_channels][in_channels / groups][kernel_height][kernel_width]. The packed
// form depends on the shape except its batch, height and width, and on the input's layout.
size_t packed_conv_weight_bytes(const ConvShape& shape, Layout input);
void pack_conv_weights(const ConvShape& shape, Layout input, const float* weights, float* packed);

// Conv. The epilogue's bias has out_channels values; its residual has the output's layout.
struct Conv {
  ConvShape shape;
  Layout input_layout = Layout::nchw, output_layout = Layout::nchw;
  const float* input = nullptr;
  const float* packed_weights = nullptr;
  float* output = nullptr;
  Epilogue epilogue;
  // What rounding took from the bias, out_channels values, or null; where alpha is 1, and not of
  // the ordered algorithm. An error of a bias is the same for every pixel, and the sums of the
  // layers that follow keep it.
  const float* bias_rest = nullptr;
  // In the place of packed_weights: the same weights as f64, and sums are f64 (exact_tile.h). Of
  // the direct algorithm and f32 images; not of transposed convolutions.
  const double* exact_weights = nullptr;
  // Sums are one chain each and not in parts: a tenth faster where parts are short, and less exact.
  bool long_sums = false;
  // Instead of input and output, each for itself: blocked images of bf16, of depthwise convolutions
  // without a residual.
  const uint16_t* input_bf16 = nullptr;
  uint16_t* output_bf16 = nullptr;
  // Values from channel block to channel block, where an image is rows of a larger one; 0: as many
  // as the shape says. Of blocked images of one sample and a 1 x 1 kernel that leaves no pixel out.
  size_t in_plane = 0, out_plane = 0;
};

size_t conv_scratch_bytes(const Conv& conv);
void conv(const Conv& conv, std::byte* scratch, ThreadPool& pool);

// Transposed convolution, nchw. Weights come as [in_channels][out_channels / groups][kh][kw].
// shape: in_* is what is read, out_* what is written, pads are those of the output.
size_t packed_conv_transpose_weight_bytes(const ConvShape& shape);
void pack_conv_transpose_weights(const ConvShape& shape, const float* weights, float* packed);
size_t conv_transpose_scratch_bytes(const Conv& conv);
void conv_transpose(const Conv& conv, std::byte* scratch, ThreadPool& pool);

// nchw <-> blocked; `pixels` is height * width. Lanes beyond `channels` are written as zero.
void to_blocked(size_t batch, size_t channels, size_t pixels, const float* nchw, float* blocked,
                ThreadPool& pool);
void from_blocked(size_t batch, size_t channels, size_t pixels, const float* blocked, float* nchw,
                  ThreadPool& pool);

}  // namespace hologram::backends::dense
