#include "backends/cpu/dense/conv_signal.h"

namespace hologram::backends::dense {
namespace {

GemmBf16 product_of(const SignalConv& conv, size_t sample) {
  const ConvShape& s = conv.shape;
  return {.m = s.out_width,
          .n = s.out_channels,
          .k = s.kernel_width,
          .a = conv.input + sample * s.in_width,
          .lda = s.stride_width,
          .parts = conv.parts,
          .packed_b = conv.packed_weights,
          .c = conv.output + sample * s.out_channels * s.out_width,
          .ldc = s.out_width,
          .c_turned = true,
          .epilogue = conv.epilogue};
}

}  // namespace

bool signal_conv_supported(const ConvShape& s) {
  return s.in_channels == 1 && s.groups == 1 && s.in_height == 1 && s.out_height == 1 &&
         s.kernel_height == 1 && s.dilation_width == 1 && s.pad_left == 0 && s.pad_top == 0 &&
         s.out_width > 0 && (s.out_width - 1) * s.stride_width + s.kernel_width <= s.in_width;
}

size_t packed_signal_conv_bytes(const ConvShape& s, Bf16Parts parts) {
  return packed_b_bf16_bytes(s.kernel_width, s.out_channels, parts);
}

void pack_signal_conv(const ConvShape& s, Bf16Parts parts, const float* weights,
                      std::byte* packed) {
  pack_b_bf16(s.kernel_width, s.out_channels, weights, s.kernel_width, true, packed, parts);
}

size_t signal_conv_scratch_bytes(const SignalConv& conv) {
  return gemm_bf16_scratch_bytes(product_of(conv, 0));
}

void signal_conv(const SignalConv& conv, std::byte* scratch, ThreadPool& pool) {
  for (size_t n = 0; n < conv.shape.batch; ++n) gemm_bf16(product_of(conv, n), scratch, pool);
}

}  // namespace hologram::backends::dense
