#include "backends/cpu/dense/conv_mirror.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

ConvShape frames(size_t batch, size_t samples, size_t filters, size_t taps, size_t stride) {
  ConvShape s;
  s.batch = batch;
  s.in_channels = 1;
  s.in_width = samples;
  s.out_channels = filters;
  s.kernel_width = taps;
  s.stride_width = stride;
  s.out_width = conv_output_size(samples, 0, taps, stride, 1);
  return s;
}

// `even` filters, then odd ones; taps 0 and taps / 2 of even ones are anything.
std::vector<float> mirrored(size_t filters, size_t taps, size_t even) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> w(filters * taps);
  for (size_t f = 0; f < filters; ++f)
    for (size_t n = 0; n <= taps / 2; ++n) {
      const bool single = n == 0 || n == taps / 2;
      const float value = f >= even && single ? 0.0f : normal(random);
      w[f * taps + n] = value;
      if (!single) w[f * taps + taps - n] = f < even ? value : -value;
    }
  return w;
}

TEST(MirrorConv, HalvesTheProductsOfEvenAndOddFilters) {
  for_each_level([] {
    for (const ConvShape& s : {frames(1, 1760, 257, 512, 160), frames(2, 700, 33, 66, 7),
                               frames(3, 64, 5, 64, 1), frames(1, 200, 16, 4, 50)})
      for (size_t even : {size_t{0}, s.out_channels / 2, s.out_channels}) {
        const std::vector<float> w = mirrored(s.out_channels, s.kernel_width, even);
        const std::vector<float> x = random_values(s.batch * s.in_width, 1),
                                 bias = random_values(s.out_channels, 2);
        ASSERT_EQ(even_filters(s.out_channels, s.kernel_width, w.data()), even);
        std::vector<float> y(s.batch * s.out_channels * s.out_width, 1e30f);
        AlignedBytes packed = poisoned_scratch(packed_mirror_conv_bytes(s, even));
        auto* floats = reinterpret_cast<float*>(packed.data());
        pack_mirror_conv(s, even, w.data(), floats);
        MirrorConv conv{.shape = s,
                        .even = even,
                        .input = x.data(),
                        .packed_weights = floats,
                        .output = y.data()};
        conv.epilogue.bias = bias.data();
        conv.epilogue.activation = Activation::relu;
        AlignedBytes scratch = poisoned_scratch(mirror_conv_scratch_bytes(conv));
        mirror_conv(conv, scratch.data(), ThreadPool::shared());
        for (size_t b = 0; b < s.batch; ++b)
          for (size_t f = 0; f < s.out_channels; ++f)
            for (size_t i = 0; i < s.out_width; ++i) {
              double sum = bias[f], size = std::abs(bias[f]);
              for (size_t n = 0; n < s.kernel_width; ++n) {
                const double term =
                    double(x[b * s.in_width + i * s.stride_width + n]) * w[f * s.kernel_width + n];
                sum += term;
                size += std::abs(term);
              }
              ASSERT_NEAR(y[(b * s.out_channels + f) * s.out_width + i], std::max(sum, 0.0),
                          1e-6 * size)
                  << s.kernel_width << " taps, filter " << f << " of " << even << " even";
            }
      }
  });
}

TEST(MirrorConv, ThreadsDoNotMatter) {
  const ConvShape s = frames(1, 4000, 70, 128, 16);
  const std::vector<float> w = mirrored(70, 128, 30), x = random_values(4000, 1);
  AlignedBytes packed = poisoned_scratch(packed_mirror_conv_bytes(s, 30));
  auto* floats = reinterpret_cast<float*>(packed.data());
  pack_mirror_conv(s, 30, w.data(), floats);
  const auto run = [&](unsigned threads) {
    ThreadPool pool(threads);
    std::vector<float> y(s.out_channels * s.out_width);
    const MirrorConv conv{
        .shape = s, .even = 30, .input = x.data(), .packed_weights = floats, .output = y.data()};
    AlignedBytes scratch = poisoned_scratch(mirror_conv_scratch_bytes(conv));
    mirror_conv(conv, scratch.data(), pool);
    return y;
  };
  EXPECT_EQ(run(1), run(3));
}

TEST(MirrorConv, KnowsWhatIsNoMirror) {
  std::vector<float> w = mirrored(6, 32, 3);
  EXPECT_EQ(even_filters(6, 32, w.data()), 3u);
  EXPECT_EQ(even_filters(12, 16, w.data()), std::nullopt);
  w[2 * 32 + 5] += 1e-6f;  // more than rounding
  EXPECT_EQ(even_filters(6, 32, w.data()), std::nullopt);
  w = mirrored(6, 32, 3);
  w[4 * 32] = 0.5f;  // an odd filter's first tap has no partner
  EXPECT_EQ(even_filters(6, 32, w.data()), std::nullopt);
  w = mirrored(6, 32, 3);
  w[7] = NAN;
  EXPECT_EQ(even_filters(6, 32, w.data()), std::nullopt);
  // An even filter after an odd one.
  w = mirrored(6, 32, 3);
  std::swap_ranges(w.begin(), w.begin() + 32, w.begin() + 5 * 32);
  EXPECT_EQ(even_filters(6, 32, w.data()), std::nullopt);
  // Zeros are either.
  w = mirrored(6, 32, 0);
  std::fill_n(w.begin(), 32, 0.0f);
  EXPECT_EQ(even_filters(6, 32, w.data()), 0u);
  EXPECT_EQ(even_filters(1, 33, std::vector<float>(33, 1.0f).data()), std::nullopt);
}

}  // namespace
}  // namespace hologram::backends::dense
