#include "backends/cpu/dense/conv_int8.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& b : bytes) {
    seed = seed * 1664525u + 1013904223u;
    b = static_cast<uint8_t>(seed >> 24);
  }
  return bytes;
}

ConvInt8Shape shape_of(size_t channels, size_t filters, size_t groups, size_t kernel, size_t stride,
                       size_t dilation, size_t pad, size_t batch = 2) {
  ConvInt8Shape s{.batch = batch, .channels = channels, .height = 9, .width = 7};
  s.filters = filters, s.groups = groups;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.dilation_height = s.dilation_width = dilation;
  s.pad_top = s.pad_left = pad;
  s.out_height = (s.height + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  s.out_width = (s.width + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  return s;
}

struct Trial {
  ConvInt8 c;
  bool w_signed;
  std::vector<uint8_t> x, w;
  std::vector<int32_t> zeros, bias;
  std::vector<float> scales;
  AlignedBytes packed;

  Trial(const ConvInt8Shape& s, int kind) : w_signed(kind & 2) {
    x = random_bytes(s.batch * s.channels * s.height * s.width, 1);
    w = random_bytes(s.filters * s.depth(), 2);
    for (size_t f = 0; f < s.filters; ++f) {
      zeros.push_back(w_signed ? static_cast<int32_t>(f % 9) - 4
                               : static_cast<int32_t>(120 + f % 9));
      bias.push_back(static_cast<int32_t>(f * 100) - 300);
    }
    scales = random_values(s.filters, 3, 0.001f, 0.01f);
    packed = poisoned_scratch(packed_conv_int8_bytes(s));
    pack_conv_int8(s, w.data(), w_signed, packed.data());
    c = {.shape = s, .x = x.data(), .x_signed = (kind & 1) != 0};
    c.x_zero = c.x_signed ? -3 : 131;
    c.x_channels_last = (kind & 4) != 0;
    c.y_channels_last = (kind & 8) != 0;
    c.packed_w = packed.data();
    c.w_zeros = zeros.data();
    c.bias32 = bias.data();
  }
  int64_t exact(size_t n, size_t f, size_t oy, size_t ox) const {
    const ConvInt8Shape& s = c.shape;
    int64_t sum = bias[f];
    const size_t channels = s.channels / s.groups, group = f / (s.filters / s.groups);
    for (size_t k = 0; k < channels; ++k)
      for (size_t t = 0; t < s.taps(); ++t) {
        const auto y =
            static_cast<int64_t>(oy * s.stride_height + t / s.kernel_width * s.dilation_height) -
            static_cast<int64_t>(s.pad_top);
        const auto xx =
            static_cast<int64_t>(ox * s.stride_width + t % s.kernel_width * s.dilation_width) -
            static_cast<int64_t>(s.pad_left);
        if (y < 0 || xx < 0 || y >= static_cast<int64_t>(s.height) ||
            xx >= static_cast<int64_t>(s.width))
          continue;
        const size_t channel = group * channels + k,
                     pixel = static_cast<size_t>(y) * s.width + static_cast<size_t>(xx);
        const uint8_t a = c.x_channels_last
                              ? x[(n * s.height * s.width + pixel) * s.channels + channel]
                              : x[(n * s.channels + channel) * s.height * s.width + pixel];
        const uint8_t b = w[(f * channels + k) * s.taps() + t];
        sum += ((c.x_signed ? static_cast<int8_t>(a) : a) - c.x_zero) *
               ((w_signed ? static_cast<int8_t>(b) : b) - zeros[f]);
      }
    return sum;
  }
  size_t place(size_t n, size_t f, size_t pixel) const {
    const ConvInt8Shape& s = c.shape;
    return c.y_channels_last ? (n * s.pixels() + pixel) * s.filters + f
                             : (n * s.filters + f) * s.pixels() + pixel;
  }
  template <typename T>
  std::vector<T> run(ThreadPool& pool) {
    std::vector<T> y(c.shape.batch * c.shape.filters * c.shape.pixels());
    c.y = y.data();
    AlignedBytes scratch = poisoned_scratch(conv_int8_scratch_bytes(c));
    conv_int8(c, scratch.data(), pool);
    return y;
  }
};

std::vector<ConvInt8Shape> shapes() {
  return {shape_of(5, 7, 1, 1, 1, 1, 0),       shape_of(35, 40, 1, 1, 2, 1, 0),
          shape_of(6, 33, 1, 3, 1, 1, 1),      shape_of(4, 8, 2, 3, 2, 1, 1),
          shape_of(37, 37, 37, 3, 1, 1, 1),    shape_of(3, 5, 1, 3, 1, 2, 2),
          shape_of(300, 300, 300, 2, 2, 1, 0), shape_of(64, 40, 1, 3, 1, 1, 1),
          shape_of(128, 32, 2, 3, 2, 1, 1),    shape_of(10, 6, 2, 9, 1, 1, 4)};
}

// Those whose bytes take shorter ways: images read in place, depthwise by four taps in blocks of 64
// and 32 channels.
std::vector<ConvInt8Shape> byte_shapes() {
  std::vector<ConvInt8Shape> all = shapes();
  for (const ConvInt8Shape& s : {shape_of(24, 33, 1, 1, 1, 1, 0), shape_of(132, 16, 1, 1, 1, 1, 0),
                                 shape_of(3, 20, 1, 3, 2, 1, 1), shape_of(96, 96, 96, 3, 1, 1, 1),
                                 shape_of(144, 144, 144, 5, 2, 1, 2)})
    all.push_back(s);
  return all;
}

TEST(ConvInt8, ExactOnEveryLevel) {
  ThreadPool pool(2);
  for_each_level([&] {
    for (const ConvInt8Shape& s : shapes())
      for (int kind : {0, 3, 5, 10, 15}) {
        Trial trial(s, kind);
        const auto y = trial.run<int32_t>(pool);
        for (size_t n = 0; n < s.batch; ++n)
          for (size_t f = 0; f < s.filters; ++f)
            for (size_t p = 0; p < s.pixels(); ++p)
              ASSERT_EQ(y[trial.place(n, f, p)],
                        trial.exact(n, f, p / s.out_width, p % s.out_width))
                  << kind << " channels " << s.channels << " at " << n << ", " << f << ", " << p;
      }
  });
}

// Rows of taps that are no whole 16 bytes, gathered by several threads: the end of a thread's last
// pixel was once written over the next thread's first.
TEST(ConvInt8, GathersPixelsOfSeveralThreads) {
  ConvInt8Shape s = shape_of(10, 4, 1, 9, 1, 1, 0, 1);
  s.height = s.width = 40;
  s.out_height = s.out_width = 32;
  Trial trial(s, 4);
  ThreadPool one(1), two(2), three(3);
  const auto expected = trial.run<int32_t>(one);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(trial.run<int32_t>(two), expected);
    ASSERT_EQ(trial.run<int32_t>(three), expected);
  }
}

// kind: as Trial has it, 16: weights have no zero points, 32: results are signed.
void expect_codes(const ConvInt8Shape& s, int kind, std::vector<uint8_t>& expected) {
  Trial trial(s, kind & 15);
  if (kind & 16) {
    trial.zeros.assign(s.filters, 0);
    trial.c.w_zeros = nullptr;
  }
  const auto add = random_values(s.filters, 6, -20.0f, 20.0f);
  trial.c.scales = trial.scales.data();
  trial.c.epilogue.bias = add.data();
  trial.c.epilogue.activation = Activation::clip;
  trial.c.epilogue.first = -1000.0f, trial.c.epilogue.second = 300.0f;
  const bool is_signed = (kind & 32) != 0;
  const double least = is_signed ? -128 : 0;
  trial.c.output = is_signed ? Int8Output::s8 : Int8Output::u8;
  trial.c.output_scale = 1.7f;
  trial.c.output_zero = 11;
  ThreadPool one(1), two(2);
  const auto y = trial.run<uint8_t>(one);
  ASSERT_EQ(y, trial.run<uint8_t>(two));
  if (expected.empty()) expected = y;
  ASSERT_EQ(y, expected);
  for (size_t n = 0; n < s.batch; ++n)
    for (size_t f = 0; f < s.filters; ++f)
      for (size_t p = 0; p < s.pixels(); ++p) {
        const double value =
            std::clamp(static_cast<double>(trial.exact(n, f, p / s.out_width, p % s.out_width)) *
                               trial.scales[f] +
                           add[f],
                       -1000.0, 300.0);
        const double code = std::clamp(value / 1.7 + 11, least, least + 255);
        const uint8_t byte = y[trial.place(n, f, p)];
        ASSERT_NEAR(is_signed ? static_cast<int8_t>(byte) : byte, code, 0.5 + 1e-3)
            << "filter " << f << " pixel " << p;
      }
}

TEST(ConvInt8, QuantisesWhatTheEpilogueGivesTheSameOnEveryLevel) {
  for (const ConvInt8Shape& s : byte_shapes())
    for (int kind : {2, 18, 30, 47, 63}) {
      SCOPED_TRACE(testing::Message() << s.channels << " channels, kind " << kind);
      std::vector<uint8_t> expected;
      for_each_level([&] { expect_codes(s, kind, expected); });
      if (HasFatalFailure()) return;
    }
}

// Weights without zero points that are unsigned have more than the 8 bits of a dot product.
TEST(ConvInt8, DepthwiseByWideWeights) {
  std::vector<uint8_t> expected;
  for_each_level([&] { expect_codes(shape_of(96, 96, 96, 3, 1, 1, 1), 16 | 12, expected); });
}

}  // namespace
}  // namespace hologram::backends::dense
