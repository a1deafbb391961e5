#include "backends/cpu/dense/conv_bf16.h"

#include <bit>

#include "backends/cpu/dense/testing.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

using conv_shapes::shape;

float rounded(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

struct Trial {
  ConvShape s;
  Bf16Parts parts;
  Layout layout = Layout::blocked;
  std::vector<float> x, w, bias, residual;
  Trial(const ConvShape& s, Bf16Parts parts)
      : s(s),
        parts(parts),
        x(random_values(s.batch * s.in_channels * s.in_height * s.in_width, 1)),
        w(random_values(s.in_channels * s.out_channels * s.kernel_height * s.kernel_width, 2)),
        bias(random_values(s.out_channels, 3)),
        residual(random_values(s.batch * s.out_channels * s.out_height * s.out_width, 4)) {}

  // nchw, with bias, residual and relu.
  std::vector<float> result(ThreadPool& pool) const {
    const size_t in_pixels = s.in_height * s.in_width, out_pixels = s.out_height * s.out_width;
    // Lanes beyond the channels are left as they are poisoned: NaN.
    AlignedBytes input =
        poisoned_scratch(s.batch * channel_blocks(s.in_channels) * 16 * in_pixels * sizeof(float));
    float* blocked = input.as<float>().data();
    for (size_t n = 0; n < s.batch; ++n)
      for (size_t c = 0; c < s.in_channels; ++c)
        for (size_t p = 0; p < in_pixels; ++p)
          blocked[((n * channel_blocks(s.in_channels) + c / 16) * in_pixels + p) * 16 + c % 16] =
              x[(n * s.in_channels + c) * in_pixels + p];
    const size_t out_bytes =
        s.batch * channel_blocks(s.out_channels) * 16 * out_pixels * sizeof(float);
    AlignedBytes output = poisoned_scratch(out_bytes), other = poisoned_scratch(out_bytes);
    to_blocked(s.batch, s.out_channels, out_pixels, residual.data(), other.as<float>().data(),
               pool);
    AlignedBytes packed = poisoned_scratch(packed_conv_bf16_bytes(s, parts, layout));
    pack_conv_bf16(s, parts, w.data(), packed.data(), layout);
    ConvBf16 conv{.shape = s,
                  .input_layout = layout,
                  .parts = parts,
                  .input = layout == Layout::nchw ? x.data() : blocked,
                  .packed_weights = packed.data()};
    conv.output = output.as<float>().data();
    conv.epilogue.bias = bias.data();
    conv.epilogue.residual = other.as<float>().data();
    conv.epilogue.activation = Activation::relu;
    AlignedBytes scratch = poisoned_scratch(conv_bf16_scratch_bytes(conv));
    conv_bf16(conv, scratch.data(), pool);
    std::vector<float> y(residual.size());
    from_blocked(s.batch, s.out_channels, out_pixels, output.as<float>().data(), y.data(), pool);
    return y;
  }

  double exact(size_t n, size_t o, size_t oy, size_t ox) const {
    const bool one = parts == Bf16Parts::one;
    double sum =
        bias[o] + residual[((n * s.out_channels + o) * s.out_height + oy) * s.out_width + ox];
    for (size_t ky = 0; ky < s.kernel_height; ++ky)
      for (size_t kx = 0; kx < s.kernel_width; ++kx) {
        const size_t y = oy * s.stride_height + ky * s.dilation_height - s.pad_top;
        const size_t v = ox * s.stride_width + kx * s.dilation_width - s.pad_left;
        if (y >= s.in_height || v >= s.in_width) continue;  // also what wrapped below zero
        for (size_t i = 0; i < s.in_channels; ++i) {
          const float a = x[((n * s.in_channels + i) * s.in_height + y) * s.in_width + v];
          const float b = w[((o * s.in_channels + i) * s.kernel_height + ky) * s.kernel_width + kx];
          sum += one ? double(rounded(a)) * rounded(b) : double(a) * b;
        }
      }
    return std::max(sum, 0.0);
  }
};

TEST(ConvBf16, EveryShape) {
  const auto body = [] {
    for (const ConvShape& s :
         {shape(32, 32, 9, 9, 1, 1, 0), shape(17, 33, 5, 7, 1, 1, 0), shape(64, 16, 8, 8, 1, 2, 0),
          shape(16, 48, 7, 7, 3, 1, 1), shape(40, 24, 15, 31, 3, 2, 1),
          shape(20, 16, 11, 9, 3, 1, 0), shape(48, 20, 13, 13, 5, 1, 2),
          shape(16, 16, 12, 12, 3, 1, 2, 2), shape(70, 65, 14, 14, 3, 2, 1),
          shape(5, 7, 1, 1, 1, 1, 0), shape(33, 9, 10, 10, 4, 3, 2),
          // nchw: few channels
          shape(3, 40, 23, 37, 7, 2, 3), shape(3, 16, 12, 10, 3, 1, 1),
          shape(1, 20, 9, 40, 9, 3, 4), shape(4, 33, 32, 32, 16, 16, 0),
          shape(2, 8, 6, 6, 2, 1, 0)})
      for (Bf16Parts parts : {Bf16Parts::one, Bf16Parts::two}) {
        Trial t(s, parts);
        if (s.in_channels <= 4) t.layout = Layout::nchw;
        const std::vector<float> y = t.result(ThreadPool::shared());
        const double depth = double(s.in_channels * s.kernel_height * s.kernel_width);
        const double allowed = 1e-6 + (parts == Bf16Parts::one ? 1e-7 : 6e-6) * depth;
        size_t at = 0;
        for (size_t n = 0; n < s.batch; ++n)
          for (size_t o = 0; o < s.out_channels; ++o)
            for (size_t oy = 0; oy < s.out_height; ++oy)
              for (size_t ox = 0; ox < s.out_width; ++ox, ++at)
                ASSERT_NEAR(y[at], t.exact(n, o, oy, ox), allowed)
                    << s.in_channels << "->" << s.out_channels << " kernel " << s.kernel_height
                    << " stride " << s.stride_height << " parts " << int(parts) << " at " << n
                    << "," << o << "," << oy << "," << ox;
      }
  };
  for_each_level(body);
  detail::allow_amx(false);
  for_each_level(body);
  detail::allow_amx(true);
}

TEST(ConvBf16, ThreadsDoNotMatter) {
  ThreadPool one(1), three(3);
  for (const ConvShape& s : {shape(64, 80, 28, 28, 3, 1, 1), shape(40, 70, 90, 60, 1, 1, 0)})
    for (Bf16Parts parts : {Bf16Parts::one, Bf16Parts::two}) {
      const Trial t(s, parts);
      EXPECT_EQ(t.result(one), t.result(three));
    }
}

}  // namespace
}  // namespace hologram::backends::dense
