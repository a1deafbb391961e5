#include "backends/cpu/dense/conv_signal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

#include "backends/cpu/dense/testing.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

float rounded(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

ConvShape frames(size_t batch, size_t samples, size_t channels, size_t kernel, size_t stride) {
  ConvShape s;
  s.batch = batch;
  s.in_channels = 1;
  s.in_width = samples;
  s.out_channels = channels;
  s.kernel_width = kernel;
  s.stride_width = stride;
  s.out_width = conv_output_size(samples, 0, kernel, stride, 1);
  return s;
}

TEST(SignalConv, SumsWindowsAndTurnsThem) {
  const auto body = [] {
    for (const ConvShape& s : {frames(1, 1760, 257, 512, 160), frames(2, 700, 33, 65, 7),
                               frames(3, 64, 5, 64, 1), frames(1, 200, 16, 30, 50)})
      for (Bf16Parts parts : {Bf16Parts::one, Bf16Parts::two}) {
        ASSERT_TRUE(signal_conv_supported(s));
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        std::vector<float> x(s.batch * s.in_width), w(s.out_channels * s.kernel_width),
            bias(s.out_channels), y(s.batch * s.out_channels * s.out_width, 1e30f);
        for (std::vector<float>* values : {&x, &w, &bias})
          for (float& v : *values) v = normal(random);
        AlignedBytes packed = poisoned_scratch(packed_signal_conv_bytes(s, parts));
        pack_signal_conv(s, parts, w.data(), packed.data());
        SignalConv conv{.shape = s,
                        .parts = parts,
                        .input = x.data(),
                        .packed_weights = packed.data(),
                        .output = y.data()};
        conv.epilogue.bias = bias.data();
        conv.epilogue.activation = Activation::relu;
        AlignedBytes scratch = poisoned_scratch(signal_conv_scratch_bytes(conv));
        signal_conv(conv, scratch.data(), ThreadPool::shared());
        const bool one = parts == Bf16Parts::one;
        const double allowed = 1e-5 + (one ? 1e-6 : 3e-5) * double(s.kernel_width);
        for (size_t n = 0; n < s.batch; ++n)
          for (size_t o = 0; o < s.out_channels; ++o)
            for (size_t i = 0; i < s.out_width; ++i) {
              double sum = bias[o];
              for (size_t k = 0; k < s.kernel_width; ++k) {
                const float a = x[n * s.in_width + i * s.stride_width + k];
                const float b = w[o * s.kernel_width + k];
                sum += one ? double(rounded(a)) * rounded(b) : double(a) * b;
              }
              ASSERT_NEAR(y[(n * s.out_channels + o) * s.out_width + i], std::max(sum, 0.0),
                          allowed)
                  << "kernel " << s.kernel_width << " at " << n << "," << o << "," << i;
            }
      }
  };
  for_each_level(body);
  detail::allow_amx(false);
  body();
  detail::allow_amx(true);
}

TEST(SignalConv, RefusesWhatIsNoSignal) {
  ConvShape margins = frames(1, 100, 8, 64, 4), channels = margins, dilated = margins;
  margins.pad_left = 1;
  channels.in_channels = 2;
  dilated.dilation_width = 2;
  for (const ConvShape& s : {margins, channels, dilated}) EXPECT_FALSE(signal_conv_supported(s));
}

}  // namespace
}  // namespace hologram::backends::dense
