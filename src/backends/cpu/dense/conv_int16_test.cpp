// Convolutions of f32 values as 16-bit integers: by digits and by shorts.
#include <algorithm>
#include <limits>

#include "backends/cpu/dense/conv_digits.h"
#include "backends/cpu/dense/conv_shorts.h"
#include "backends/cpu/dense/unit_testing.h"

namespace hologram::backends::dense {
namespace {

using conv_shapes::shape;

struct Digits {
  using Conv = ConvDigits;
  static constexpr double kError = 6e-5;
  static size_t packed_bytes(const ConvShape& s) { return packed_conv_digits_bytes(s); }
  static void pack(const ConvShape& s, const float* weights, std::byte* packed) {
    pack_conv_digits(s, weights, packed);
  }
  static size_t scratch_bytes(const Conv& conv) { return conv_digits_scratch_bytes(conv); }
  static void run(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
    conv_digits(conv, scratch, pool);
  }
};

struct Shorts {
  using Conv = ConvShorts;
  static constexpr double kError = 8e-5;
  static size_t packed_bytes(const ConvShape& s) { return packed_conv_shorts_bytes(s); }
  static void pack(const ConvShape& s, const float* weights, std::byte* packed) {
    pack_conv_shorts(s, weights, packed);
  }
  static size_t scratch_bytes(const Conv& conv) { return conv_shorts_scratch_bytes(conv); }
  static void run(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
    conv_shorts(conv, scratch, pool);
  }
};

template <class Form>
struct Trial {
  ConvShape s;
  std::vector<float> x, w, bias, residual;
  Epilogue epilogue;
  bool has_residual = true;
  explicit Trial(const ConvShape& s)
      : s(s),
        x(random_values(s.batch * s.in_channels * s.in_height * s.in_width, 1)),
        w(random_values(s.in_channels * s.out_channels * s.kernel_height * s.kernel_width, 2)),
        bias(random_values(s.out_channels, 3)),
        residual(random_values(s.batch * s.out_channels * s.out_height * s.out_width, 4)) {
    // Samples and output channels have scales of their own.
    for (size_t i = 0; i < x.size() / 2; ++i) x[i] *= 30;
    for (size_t i = 0; i < w.size(); ++i)
      w[i] *= float(1 + i / (w.size() / s.out_channels) % 3 * 10);
  }

  // nchw, with bias, residual and activation.
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
    AlignedBytes packed = poisoned_scratch(Form::packed_bytes(s));
    Form::pack(s, w.data(), packed.data());
    typename Form::Conv conv{.shape = s,
                             .input = blocked,
                             .packed_weights = packed.data(),
                             .output = output.as<float>().data(),
                             .epilogue = epilogue};
    conv.epilogue.bias = bias.data();
    if (has_residual) conv.epilogue.residual = other.as<float>().data();
    const size_t bytes = Form::scratch_bytes(conv);
    AlignedBytes scratch = poisoned_scratch(bytes);
    Form::run(conv, scratch.data(), pool);
    for (size_t i = bytes; i < scratch.size(); ++i) EXPECT_EQ(scratch.data()[i], std::byte{0xff});
    std::vector<float> y(residual.size());
    from_blocked(s.batch, s.out_channels, out_pixels, output.as<float>().data(), y.data(), pool);
    return y;
  }

  // Of the sum alone, and the largest values that share a scale with its terms.
  struct Sum {
    double value = 0, scale = 0;
  };
  Sum exact(size_t n, size_t o, size_t oy, size_t ox) const {
    const size_t taps = s.kernel_height * s.kernel_width;
    const bool points = taps == 1 && s.pad_top == 0;
    double sum = 0, most_x = 0, most_w = 0;
    const size_t sample = s.in_channels * s.in_height * s.in_width;
    if (!points)
      for (size_t i = 0; i < sample; ++i)
        most_x = std::max(most_x, std::abs(double(x[n * sample + i])));
    for (size_t i = 0; i < s.in_channels * taps; ++i)
      most_w = std::max(most_w, std::abs(double(w[o * s.in_channels * taps + i])));
    for (size_t ky = 0; ky < s.kernel_height; ++ky)
      for (size_t kx = 0; kx < s.kernel_width; ++kx) {
        const size_t y = oy * s.stride_height + ky * s.dilation_height - s.pad_top;
        const size_t v = ox * s.stride_width + kx * s.dilation_width - s.pad_left;
        if (y >= s.in_height || v >= s.in_width) continue;  // also what wrapped below zero
        for (size_t i = 0; i < s.in_channels; ++i) {
          const double a = x[((n * s.in_channels + i) * s.in_height + y) * s.in_width + v];
          sum += a * w[((o * s.in_channels + i) * s.kernel_height + ky) * s.kernel_width + kx];
          if (points) most_x = std::max(most_x, std::abs(a));
        }
      }
    return {sum, most_x * most_w};
  }
};

// Errors of roundings: of each term at most 2^-15 of the product of the largest values, of shorts
// of that of the norms of 32, and of all the root of their number times a little of that.
template <class Form>
void expect_exact(const Trial<Form>& t, const std::vector<float>& y, auto finish) {
  const ConvShape& s = t.s;
  const double terms = double(s.in_channels * s.kernel_height * s.kernel_width);
  size_t at = 0;
  for (size_t n = 0; n < s.batch; ++n)
    for (size_t o = 0; o < s.out_channels; ++o)
      for (size_t oy = 0; oy < s.out_height; ++oy)
        for (size_t ox = 0; ox < s.out_width; ++ox, ++at) {
          const typename Trial<Form>::Sum sum = t.exact(n, o, oy, ox);
          const double allowed = Form::kError * std::sqrt(terms) * sum.scale + 1e-6;
          ASSERT_NEAR(y[at], finish(sum.value, at, o), allowed)
              << s.in_channels << "->" << s.out_channels << " kernel " << s.kernel_height
              << " stride " << s.stride_height << " at " << n << "," << o << "," << oy << "," << ox;
        }
}

template <class Form>
class ConvInt16 : public testing::Test {};
using Forms = testing::Types<Digits, Shorts>;
TYPED_TEST_SUITE(ConvInt16, Forms);

TYPED_TEST(ConvInt16, EveryShape) {
  for_each_unit_level([] {
    ConvShape uneven = shape(21, 16, 9, 12, 3, 2, 1);
    uneven.kernel_height = 2;
    uneven.stride_height = 1;
    uneven.pad_left = 2;
    uneven.out_height = conv_output_size(9, 2, 2, 1, 1);
    uneven.out_width = conv_output_size(12, 3, 3, 2, 1);
    for (const ConvShape& s :
         {shape(32, 32, 9, 9, 1, 1, 0), shape(53, 33, 5, 7, 1, 1, 0), shape(130, 16, 8, 9, 1, 2, 0),
          shape(64, 20, 6, 7, 1, 1, 1), shape(16, 48, 7, 7, 3, 1, 1),
          shape(40, 24, 15, 31, 3, 2, 1), shape(64, 40, 14, 14, 3, 2, 1),
          shape(20, 16, 11, 9, 3, 1, 0), shape(48, 20, 13, 13, 5, 1, 2),
          shape(16, 16, 12, 12, 3, 1, 2, 2), shape(70, 65, 14, 14, 3, 2, 1),
          shape(128, 33, 9, 9, 3, 1, 1), shape(192, 16, 7, 7, 3, 1, 2, 2),
          shape(5, 7, 1, 1, 1, 1, 0), shape(5, 7, 1, 1, 3, 1, 1), shape(33, 9, 10, 10, 4, 3, 2),
          shape(24, 8, 8, 8, 2, 1, 3), uneven}) {
      Trial<TypeParam> t(s);
      t.epilogue.activation = Activation::relu;
      expect_exact(t, t.result(ThreadPool::shared()), [&](double sum, size_t at, size_t o) {
        return std::max(sum + t.bias[o] + t.residual[at], 0.0);
      });
    }
  });
}

TYPED_TEST(ConvInt16, Activations) {
  for_each_unit_level([] {
    for (const ConvShape& s : {shape(53, 37, 6, 5, 1, 1, 0), shape(53, 37, 6, 5, 3, 1, 1)}) {
      Trial<TypeParam> t(s);
      t.has_residual = false;
      t.epilogue.activation = Activation::leaky_relu;
      t.epilogue.first = 0.25f;
      expect_exact(t, t.result(ThreadPool::shared()), [&](double sum, size_t, size_t o) {
        const double v = sum + t.bias[o];
        return v < 0 ? 0.25 * v : v;
      });
      t.epilogue.activation = Activation::clip;
      t.epilogue.first = -3;
      t.epilogue.second = 5;
      expect_exact(t, t.result(ThreadPool::shared()), [&](double sum, size_t, size_t o) {
        return std::clamp(sum + t.bias[o], -3.0, 5.0);
      });
    }
  });
}

// Terms as large as they come, in sums as long as they come: none may leave 32 bits.
TYPED_TEST(ConvInt16, TheLongestSum) {
  const ConvShape s = shape(7281, 16, 3, 3, 3, 1, 0);
  Trial<TypeParam> t(s);
  t.has_residual = false;
  for (float& v : t.x) v = 0.5019f;
  for (float& v : t.w) v = -2.0f * 0.5019f;
  for (float& v : t.bias) v = 0;
  const double expected = -2.0 * 0.5019 * 0.5019 * 7281 * 9;
  for (float v : t.result(ThreadPool::shared())) ASSERT_NEAR(v, expected, 1e-4 * -expected);
}

TYPED_TEST(ConvInt16, WhatIsNotFiniteMakesNaN) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       -std::numeric_limits<float>::infinity()};
  for_each_unit_level([&] {
    for (size_t kernel : {1, 3})
      for (float value : bad) {
        const ConvShape s = shape(37, 20, 6, 5, kernel, 1, kernel / 2);
        const size_t pixels = 30;
        Trial<TypeParam> t(s);
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

TYPED_TEST(ConvInt16, ZerosStayZeros) {
  for (size_t kernel : {1, 3}) {
    Trial<TypeParam> t(shape(37, 20, 6, 5, kernel, 1, kernel / 2));
    t.has_residual = false;
    std::ranges::fill(t.bias, 0.0f);
    for (size_t i = 0; i < t.x.size() / 2; ++i) t.x[i] = 0;
    const std::vector<float> y = t.result(ThreadPool::shared());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i] == 0, i < y.size() / 2) << i;
  }
}

TYPED_TEST(ConvInt16, ThreadsAndBatchDoNotMatter) {
  ThreadPool one(1), two(2), five(5);
  for (const ConvShape& s : {shape(64, 80, 28, 28, 3, 1, 1), shape(40, 70, 90, 60, 1, 1, 0),
                             shape(96, 48, 30, 41, 3, 2, 1)}) {
    const Trial<TypeParam> t(s);
    const std::vector<float> y = t.result(one);
    EXPECT_EQ(y, t.result(two));
    EXPECT_EQ(y, t.result(five));
    Trial<TypeParam> second = t;
    second.s.batch = 1;
    second.x.erase(second.x.begin(), second.x.begin() + ptrdiff_t(t.x.size() / 2));
    second.residual.erase(second.residual.begin(),
                          second.residual.begin() + ptrdiff_t(y.size() / 2));
    EXPECT_EQ(second.result(two), std::vector<float>(y.begin() + ptrdiff_t(y.size() / 2), y.end()));
  }
}

// Sums of integers are exact, so that tiles give the bits of any other CPU with AVX-512.
TYPED_TEST(ConvInt16, TheSameBitsByTiles) {
  for (const ConvShape& s : {shape(200, 80, 9, 10, 3, 1, 1), shape(300, 40, 9, 10, 1, 1, 0)}) {
    const Trial<TypeParam> t(s);
    detail::allow_amx(false);
    const std::vector<float> y = t.result(ThreadPool::shared());
    detail::allow_amx(true);
    EXPECT_EQ(t.result(ThreadPool::shared()), y);
  }
}

TEST(ConvDigits, HasALongestSum) {
  EXPECT_TRUE(conv_digits_supported(shape(7281, 16, 3, 3, 3, 1, 0)));
  EXPECT_FALSE(conv_digits_supported(shape(7282, 16, 3, 3, 3, 1, 0)));
}

TEST(ConvShorts, PaysWhereChannelsFillTheChunks) {
  const auto pays = [](size_t in, size_t kernel) {
    return conv_shorts_pays(shape(in, 64, 8, 8, kernel, 1, kernel / 2));
  };
  EXPECT_TRUE(pays(32, 1));
  EXPECT_TRUE(pays(64, 3));
  EXPECT_TRUE(pays(16, 3));   // two pixels a chunk
  EXPECT_FALSE(pays(16, 1));  // half of each chunk would be zeros
}

TEST(ConvDigits, PaysWhereChannelsFillTheChunks) {
  const auto pays = [](size_t in, size_t out, size_t kernel) {
    return conv_digits_pays(shape(in, out, 8, 8, kernel, 1, kernel / 2));
  };
  EXPECT_TRUE(pays(64, 64, 3));
  EXPECT_TRUE(pays(512, 512, 3));
  EXPECT_TRUE(pays(256, 128, 1));
  EXPECT_TRUE(pays(1024, 256, 1));
  EXPECT_TRUE(pays(16, 64, 3));   // three pixels a chunk
  EXPECT_FALSE(pays(16, 64, 1));  // three quarters of each chunk would be zeros
  EXPECT_FALSE(pays(32, 128, 1));
  EXPECT_FALSE(pays(64, 16, 1));  // finding the scales costs more
  EXPECT_FALSE(pays(256, 64, 1));
  EXPECT_FALSE(pays(64, 256, 1));  // finishing does
}

}  // namespace
}  // namespace hologram::backends::dense
