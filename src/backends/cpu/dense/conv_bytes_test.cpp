#include "backends/cpu/dense/conv_bytes.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/testing.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

using conv_shapes::shape;

struct Trial {
  ConvShape s;
  bool bf16 = false;  // all images
  std::vector<float> x, w, bias, residual;
  Epilogue epilogue;
  bool has_residual = true;
  explicit Trial(const ConvShape& s, float low = -1.0f)
      : s(s),
        x(random_values(s.batch * s.in_channels * s.in_height * s.in_width, 1, low)),
        w(random_values(s.in_channels * s.out_channels * s.kernel_height * s.kernel_width, 2)),
        bias(random_values(s.out_channels, 3)),
        residual(random_values(s.batch * s.out_channels * s.out_height * s.out_width, 4)) {
    // Samples and output channels have scales of their own.
    for (size_t i = 0; i < x.size() / 2; ++i) x[i] *= 30;
    for (size_t i = 0; i < w.size(); ++i)
      w[i] *= float(1 + i / (w.size() / s.out_channels) % 3 * 10);
    // As bf16 stores them, too.
    for (std::vector<float>* values : {&x, &residual})
      for (float& v : *values) {
        uint16_t narrow;
        narrow_values(&v, 1, &narrow);
        widen_values(&narrow, 1, &v);
      }
  }

  // nchw -> blocked, f32 or bf16; lanes beyond the channels are left as they are poisoned: NaN.
  AlignedBytes image_of(const std::vector<float>& values, size_t channels, size_t pixels) const {
    const size_t count = s.batch * channel_blocks(channels) * 16 * pixels;
    AlignedBytes wide = poisoned_scratch(count * sizeof(float));
    float* blocked = wide.as<float>().data();
    for (size_t n = 0; n < s.batch; ++n)
      for (size_t c = 0; c < channels; ++c)
        for (size_t p = 0; p < pixels; ++p)
          blocked[((n * channel_blocks(channels) + c / 16) * pixels + p) * 16 + c % 16] =
              values[(n * channels + c) * pixels + p];
    if (!bf16) return wide;
    AlignedBytes narrow = poisoned_scratch(count * sizeof(uint16_t));
    narrow_values(blocked, count, reinterpret_cast<uint16_t*>(narrow.data()));
    return narrow;
  }

  // nchw, with bias, residual and activation.
  std::vector<float> result(ThreadPool& pool) const {
    const size_t in_pixels = s.in_height * s.in_width, out_pixels = s.out_height * s.out_width;
    const AlignedBytes input = image_of(x, s.in_channels, in_pixels);
    const AlignedBytes other = image_of(residual, s.out_channels, out_pixels);
    const size_t count = s.batch * channel_blocks(s.out_channels) * 16 * out_pixels;
    AlignedBytes output = poisoned_scratch(count * sizeof(float));
    AlignedBytes packed = poisoned_scratch(packed_conv_bytes_bytes(s));
    pack_conv_bytes(s, w.data(), packed.data());
    ConvBytes conv{.shape = s,
                   .input = input.data(),
                   .input_bf16 = bf16,
                   .packed_weights = packed.data(),
                   .output = output.data(),
                   .output_bf16 = bf16,
                   .epilogue = epilogue};
    conv.epilogue.bias = bias.data();
    if (has_residual && bf16)
      conv.residual_bf16 = reinterpret_cast<const uint16_t*>(other.data());
    else if (has_residual)
      conv.epilogue.residual = reinterpret_cast<const float*>(other.data());
    const size_t bytes = conv_bytes_scratch_bytes(conv);
    AlignedBytes scratch = poisoned_scratch(bytes);
    conv_bytes(conv, scratch.data(), pool);
    for (size_t i = bytes; i < scratch.size(); ++i) EXPECT_EQ(scratch.data()[i], std::byte{0xff});
    if (bf16) {
      AlignedBytes wide = poisoned_scratch(count * sizeof(float));
      widen_values(reinterpret_cast<const uint16_t*>(output.data()), count,
                   wide.as<float>().data());
      output = std::move(wide);
    }
    std::vector<float> y(residual.size());
    from_blocked(s.batch, s.out_channels, out_pixels, output.as<float>().data(), y.data(), pool);
    return y;
  }

  // Of the sum alone, and what rounding to bytes adds to it: steps are uniform within themselves.
  struct Sum {
    double value = 0, deviation = 0;
  };
  Sum exact(size_t n, size_t o, size_t oy, size_t ox) const {
    const size_t taps = s.kernel_height * s.kernel_width;
    const bool points = taps == 1 && s.pad_top == 0;
    const size_t sample = s.in_channels * s.in_height * s.in_width;
    double low = 0, high = 0, most = 0, sum = 0, square_x = 0, square_w = 0, sum_w = 0;
    const auto reach = [&](double v) { low = std::min(low, v), high = std::max(high, v); };
    for (size_t i = 0; !points && i < sample; ++i) reach(x[n * sample + i]);
    for (size_t i = 0; i < s.in_channels * taps; ++i)
      most = std::max(most, std::abs(double(w[o * s.in_channels * taps + i])));
    for (size_t ky = 0; ky < s.kernel_height; ++ky)
      for (size_t kx = 0; kx < s.kernel_width; ++kx) {
        const size_t y = oy * s.stride_height + ky * s.dilation_height - s.pad_top;
        const size_t v = ox * s.stride_width + kx * s.dilation_width - s.pad_left;
        if (y >= s.in_height || v >= s.in_width) continue;  // also what wrapped below zero
        for (size_t i = 0; i < s.in_channels; ++i) {
          const double a = x[((n * s.in_channels + i) * s.in_height + y) * s.in_width + v];
          const double b =
              w[((o * s.in_channels + i) * s.kernel_height + ky) * s.kernel_width + kx];
          sum += a * b;
          sum_w += b;
          square_x += a * a;
          square_w += b * b;
          if (points) reach(a);
        }
      }
    const double step_x = (high - low) / 255, step_w = most / 127;
    // Half a step of the zero point is everybody's.
    return {sum, std::sqrt((step_x * step_x * square_w + step_w * step_w * square_x) / 12) +
                     step_x * std::abs(sum_w) / 8};
  }
};

// `slope`: how much the epilogue enlarges errors.
void expect_near(const Trial& t, double slope, auto finish) {
  const std::vector<float> y = t.result(ThreadPool::shared());
  const ConvShape& s = t.s;
  size_t at = 0;
  for (size_t n = 0; n < s.batch; ++n)
    for (size_t o = 0; o < s.out_channels; ++o)
      for (size_t oy = 0; oy < s.out_height; ++oy)
        for (size_t ox = 0; ox < s.out_width; ++ox, ++at) {
          const Trial::Sum sum = t.exact(n, o, oy, ox);
          const double expected = finish(sum.value, at, o);
          const double allowed =
              5.5 * slope * sum.deviation + 1e-6 + (t.bf16 ? std::abs(expected) / 250 : 0);
          ASSERT_NEAR(y[at], expected, allowed)
              << s.in_channels << "->" << s.out_channels << " kernel " << s.kernel_height
              << " stride " << s.stride_height << " at " << n << "," << o << "," << oy << "," << ox;
        }
}

void with_and_without_tiles(auto body) {
  for_each_level(body);
  detail::allow_amx(false);
  for_each_level(body);
  detail::allow_amx(true);
}

TEST(ConvBytes, EveryShape) {
  with_and_without_tiles([] {
    ConvShape uneven = shape(21, 16, 9, 12, 3, 2, 1);
    uneven.kernel_height = 2;
    uneven.stride_height = 1;
    uneven.pad_left = 2;
    uneven.out_height = conv_output_size(9, 2, 2, 1, 1);
    uneven.out_width = conv_output_size(12, 3, 3, 2, 1);
    for (const ConvShape& s : {shape(32, 32, 9, 9, 1, 1, 0), shape(53, 33, 5, 7, 1, 1, 0),
                               shape(130, 16, 8, 9, 1, 2, 0), shape(64, 20, 6, 7, 1, 1, 1),
                               shape(16, 48, 7, 7, 3, 1, 1), shape(40, 24, 15, 31, 3, 2, 1),
                               shape(64, 40, 14, 14, 3, 2, 1), shape(20, 16, 11, 9, 3, 1, 0),
                               shape(48, 20, 13, 13, 5, 1, 2), shape(16, 16, 12, 12, 3, 1, 2, 2),
                               shape(70, 65, 14, 14, 3, 2, 1), shape(128, 33, 9, 9, 3, 1, 1),
                               shape(5, 7, 1, 1, 3, 1, 1), shape(33, 9, 10, 10, 4, 3, 2), uneven})
      for (const bool bf16 : {false, true}) {
        Trial t(s, bf16 ? 0.0f : -1.0f);  // with and without a zero point
        t.bf16 = bf16;
        t.epilogue.activation = Activation::relu;
        expect_near(t, 1.1, [&](double sum, size_t at, size_t o) {
          return std::max(sum + t.bias[o] + t.residual[at], 0.0);
        });
      }
  });
}

TEST(ConvBytes, Activations) {
  with_and_without_tiles([] {
    for (const bool bf16 : {false, true})
      for (const ConvShape& s : {shape(53, 37, 6, 5, 1, 1, 0), shape(53, 37, 6, 5, 3, 1, 1)}) {
        Trial t(s, -0.25f);
        t.bf16 = bf16;
        t.has_residual = false;
        t.epilogue.activation = Activation::leaky_relu;
        t.epilogue.first = 0.25f;
        expect_near(t, 1.1, [&](double sum, size_t, size_t o) {
          const double v = sum + t.bias[o];
          return v < 0 ? 0.25 * v : v;
        });
        t.epilogue.post = true;
        t.epilogue.post_scale = 2.0f;
        t.epilogue.post_shift = 0.5f;
        t.epilogue.post_low = -1.5f;
        expect_near(t, 2.0, [&](double sum, size_t, size_t o) {
          const double v = sum + t.bias[o];
          return std::max((v < 0 ? 0.25 * v : v) * 2 + 0.5, -1.5);
        });
        t.epilogue.post = false;
        t.epilogue.activation = Activation::silu;
        t.epilogue.first = 1.0f;
        expect_near(t, 1.1, [&](double sum, size_t, size_t o) {
          const double v = sum + t.bias[o];
          return v / (1 + std::exp(-v));
        });
      }
  });
}

// Terms as large as they come, in sums as long as they come: none may leave 32 bits.
TEST(ConvBytes, TheLongestSum) {
  const ConvShape s = shape(7281, 16, 3, 3, 3, 1, 0);
  ASSERT_TRUE(conv_bytes_supported(s));
  ASSERT_FALSE(conv_bytes_supported(shape(7282, 16, 3, 3, 3, 1, 0)));
  Trial t(s);
  t.has_residual = false;
  for (float& v : t.x) v = 0.5f;
  for (float& v : t.w) v = -2.0f;
  for (float& v : t.bias) v = 0;
  for (float v : t.result(ThreadPool::shared())) ASSERT_NEAR(v, -7281.0 * 9, 10);
}

TEST(ConvBytes, WhatIsNotFiniteMakesNaN) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = HUGE_VALF;
  with_and_without_tiles([&] {
    for (const bool bf16 : {false, true})
      for (size_t kernel : {1, 3})
        for (float value : {kNan, -kNan, kInf, -kInf}) {
          const ConvShape s = shape(37, 20, 6, 5, kernel, 1, kernel / 2);
          const size_t pixels = 30;
          Trial t(s);
          t.bf16 = bf16;
          t.has_residual = false;
          t.x[pixels * 36 + 7] = value;  // a pixel of the first sample
          t.w[3 * 37 * kernel * kernel + 5] = value;
          const std::vector<float> y = t.result(ThreadPool::shared());
          for (size_t i = 0; i < y.size(); ++i) {
            const size_t n = i / (20 * pixels), o = i / pixels % 20;
            const bool touched = n == 0 && (kernel == 3 || i % pixels == 7);
            ASSERT_EQ(std::isnan(y[i]), touched || o == 3) << kernel << " at " << i;
          }
        }
  });
}

TEST(ConvBytes, ZerosStayZeros) {
  for (size_t kernel : {1, 3}) {
    Trial t(shape(37, 20, 6, 5, kernel, 1, kernel / 2));
    t.has_residual = false;
    std::ranges::fill(t.bias, 0.0f);
    for (size_t i = 0; i < t.x.size() / 2; ++i) t.x[i] = 0;
    const std::vector<float> y = t.result(ThreadPool::shared());
    for (size_t i = 0; i < y.size() / 2; ++i) ASSERT_EQ(y[i], 0) << i;
  }
}

TEST(ConvBytes, ThreadsAndBatchDoNotMatter) {
  ThreadPool one(1), two(2), five(5);
  for (const ConvShape& s : {shape(64, 80, 28, 28, 3, 1, 1), shape(40, 70, 90, 60, 1, 1, 0),
                             shape(96, 48, 30, 41, 3, 2, 1)}) {
    const Trial t(s);
    const std::vector<float> y = t.result(one);
    EXPECT_EQ(y, t.result(two));
    EXPECT_EQ(y, t.result(five));
    Trial second = t;
    second.s.batch = 1;
    second.x.erase(second.x.begin(), second.x.begin() + ptrdiff_t(t.x.size() / 2));
    second.residual.erase(second.residual.begin(),
                          second.residual.begin() + ptrdiff_t(y.size() / 2));
    EXPECT_EQ(second.result(two), std::vector<float>(y.begin() + ptrdiff_t(y.size() / 2), y.end()));
  }
}

TEST(ConvBytes, TheSameBitsByTiles) {
  for (const ConvShape& s : {shape(200, 80, 9, 10, 3, 1, 1), shape(300, 40, 9, 10, 1, 1, 0)}) {
    const Trial t(s);
    detail::allow_amx(false);
    const std::vector<float> y = t.result(ThreadPool::shared());
    detail::allow_amx(true);
    EXPECT_EQ(t.result(ThreadPool::shared()), y);
  }
}

TEST(ConvBytes, PaysWhereChannelsFillTheChunks) {
  const auto pays = [](size_t in, size_t kernel) {
    return conv_bytes_pays(shape(in, 64, 8, 8, kernel, 1, kernel / 2));
  };
  EXPECT_TRUE(pays(64, 3));
  EXPECT_TRUE(pays(64, 1));
  EXPECT_TRUE(pays(32, 3));  // three pixels in two chunks
  EXPECT_FALSE(pays(32, 1));
  EXPECT_FALSE(pays(24, 1));
}

}  // namespace
}  // namespace hologram::backends::dense
