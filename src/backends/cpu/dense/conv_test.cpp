#include "backends/cpu/dense/conv.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

using conv_shapes::shape;

// out[n][c][y][x] before the epilogue, in double.
std::vector<double> reference(const ConvShape& s, const std::vector<float>& in,
                              const std::vector<float>& w, bool transposed) {
  std::vector<double> out(s.batch * s.out_channels * s.out_height * s.out_width);
  const size_t gi = s.in_channels / s.groups, go = s.out_channels / s.groups;
  for (size_t n = 0; n < s.batch; ++n)
    for (size_t g = 0; g < s.groups; ++g)
      for (size_t o = 0; o < go; ++o)
        for (size_t i = 0; i < gi; ++i)
          for (size_t ky = 0; ky < s.kernel_height; ++ky)
            for (size_t kx = 0; kx < s.kernel_width; ++kx) {
              const size_t pair = transposed ? (g * gi + i) * go + o : (g * go + o) * gi + i;
              const double weight = w[(pair * s.kernel_height + ky) * s.kernel_width + kx];
              // Strided coordinates run over the smaller side.
              const size_t rows = transposed ? s.in_height : s.out_height;
              const size_t columns = transposed ? s.in_width : s.out_width;
              for (size_t a = 0; a < rows; ++a)
                for (size_t b = 0; b < columns; ++b) {
                  const ptrdiff_t y = ptrdiff_t(a * s.stride_height + ky * s.dilation_height) -
                                      ptrdiff_t(s.pad_top);
                  const ptrdiff_t x =
                      ptrdiff_t(b * s.stride_width + kx * s.dilation_width) - ptrdiff_t(s.pad_left);
                  const size_t h = transposed ? s.out_height : s.in_height;
                  const size_t v = transposed ? s.out_width : s.in_width;
                  if (y < 0 || x < 0 || y >= ptrdiff_t(h) || x >= ptrdiff_t(v)) continue;
                  const size_t in_y = transposed ? a : size_t(y), in_x = transposed ? b : size_t(x);
                  const size_t out_y = transposed ? size_t(y) : a,
                               out_x = transposed ? size_t(x) : b;
                  out[((n * s.out_channels + g * go + o) * s.out_height + out_y) * s.out_width +
                      out_x] +=
                      weight *
                      in[((n * s.in_channels + g * gi + i) * s.in_height + in_y) * s.in_width +
                         in_x];
                }
            }
  return out;
}

struct Trial {
  ConvShape s;
  bool transposed = false;
  Layout in = Layout::nchw, out = Layout::nchw;
  Epilogue epilogue;  // bias and residual pointers are set by result()
  bool bias = false, residual = false, rest = false, exact = false;
  unsigned threads = 2;

  // The output in nchw.
  std::vector<float> result() const {
    ThreadPool pool(threads);
    const size_t weights_count =
        s.in_channels * s.out_channels / s.groups * s.kernel_height * s.kernel_width;
    const std::vector<float> x = random_values(s.batch * s.in_channels * s.in_height * s.in_width,
                                               1),
                             w = random_values(weights_count, 2),
                             b = random_values(s.out_channels, 3),
                             more = random_values(s.out_channels, 5);
    const size_t out_pixels = s.out_height * s.out_width, in_pixels = s.in_height * s.in_width;
    AlignedBytes packed = poisoned_scratch(transposed ? packed_conv_transpose_weight_bytes(s)
                                                      : packed_conv_weight_bytes(s, in));
    Conv conv;
    conv.shape = s;
    conv.input_layout = in;
    conv.output_layout = out;
    conv.packed_weights = packed.as<float>().data();
    conv.epilogue = epilogue;
    if (transposed)
      pack_conv_transpose_weights(s, w.data(), packed.as<float>().data());
    else
      pack_conv_weights(s, in, w.data(), packed.as<float>().data());
    const std::span<const float> floats =
        packed.as<float>().first(transposed ? 0 : packed_conv_weight_bytes(s, in) / sizeof(float));
    const std::vector<double> wide(floats.begin(), floats.end());
    if (exact) {
      conv.packed_weights = nullptr;
      conv.exact_weights = wide.data();
    }
    AlignedBytes input = poisoned_scratch(s.batch * channel_blocks(s.in_channels) * kChannelBlock *
                                          in_pixels * sizeof(float));
    if (in == Layout::blocked)
      to_blocked(s.batch, s.in_channels, in_pixels, x.data(), input.as<float>().data(), pool);
    else
      std::memcpy(input.data(), x.data(), x.size() * sizeof(float));
    conv.input = input.as<float>().data();
    const size_t out_bytes =
        s.batch * channel_blocks(s.out_channels) * kChannelBlock * out_pixels * sizeof(float);
    AlignedBytes output = poisoned_scratch(out_bytes), other = poisoned_scratch(out_bytes);
    conv.output = output.as<float>().data();
    if (bias) conv.epilogue.bias = b.data();
    if (rest) conv.bias_rest = more.data();
    const std::vector<float> r = random_values(s.batch * s.out_channels * out_pixels, 4);
    if (residual) {
      if (out == Layout::blocked)
        to_blocked(s.batch, s.out_channels, out_pixels, r.data(), other.as<float>().data(), pool);
      else
        std::memcpy(other.data(), r.data(), r.size() * sizeof(float));
      conv.epilogue.residual = other.as<float>().data();
    }
    AlignedBytes scratch = poisoned_scratch(transposed ? conv_transpose_scratch_bytes(conv)
                                                       : conv_scratch_bytes(conv));
    (transposed ? dense::conv_transpose : dense::conv)(conv, scratch.data(), pool);
    std::vector<float> result(s.batch * s.out_channels * out_pixels);
    if (out == Layout::blocked)
      from_blocked(s.batch, s.out_channels, out_pixels, conv.output, result.data(), pool);
    else
      std::copy_n(conv.output, result.size(), result.data());
    return result;
  }

  void expect_right() const {
    const std::vector<float> x = random_values(s.batch * s.in_channels * s.in_height * s.in_width,
                                               1),
                             w = random_values(s.in_channels * s.out_channels / s.groups *
                                                   s.kernel_height * s.kernel_width,
                                               2),
                             b = random_values(s.out_channels, 3),
                             more = random_values(s.out_channels, 5),
                             r = random_values(
                                 s.batch * s.out_channels * s.out_height * s.out_width, 4);
    const std::vector<double> right = reference(s, x, w, transposed);
    const std::vector<float> got = result();
    const size_t inputs = s.in_channels / s.groups;
    const auto depth = double(inputs * s.kernel_height * s.kernel_width);
    // Winograd's transforms add roundings of their own.
    const double unit = s.algorithm == ConvAlgorithm::winograd ? 2.5e-7 : 1e-7;
    ASSERT_EQ(right.size(), got.size());
    for (size_t i = 0; i < right.size(); ++i) {
      const size_t channel = i / (s.out_height * s.out_width) % s.out_channels;
      double v = right[i] * double{epilogue.alpha};
      if (bias) v += b[channel];
      if (rest) v += more[channel];
      if (residual) v += r[i];
      if (epilogue.activation == Activation::relu) v = std::max(v, 0.0);
      if (epilogue.activation == Activation::silu) v = v / (1 + std::exp(-v));
      if (exact) {  // rounded once; depthwise adds a residual afterwards
        const float unit = std::nextafter(std::fabs(got[i]), 1e9f) - std::fabs(got[i]);
        ASSERT_NEAR(got[i], v, 0.5001 * double{unit} + 1e-14)
            << s.in_channels << "->" << s.out_channels << " kernel " << s.kernel_height
            << " groups " << s.groups << " layouts " << int(in) << int(out) << " at " << i;
        continue;
      }
      ASSERT_NEAR(got[i], v, 2e-6 + unit * depth)
          << s.in_channels << "->" << s.out_channels << " " << s.in_height << "x" << s.in_width
          << " kernel " << s.kernel_height << " stride " << s.stride_height << " pad " << s.pad_top
          << " dilation " << s.dilation_height << " groups " << s.groups << " layouts " << int(in)
          << int(out) << " at " << i;
    }
  }
};

void expect_every_layout(const ConvShape& s) {
  for (Layout in : {Layout::nchw, Layout::blocked})
    for (Layout out : {Layout::nchw, Layout::blocked}) {
      if (!conv_supported(s, in, out)) continue;
      for (int kind = 0; kind < 6; ++kind) {
        Trial run{.s = s,
                  .in = in,
                  .out = out,
                  .bias = kind != 0,
                  .residual = kind == 2 || kind == 3,
                  .rest = kind >= 4};
        if (kind == 1 || kind == 4) run.epilogue.activation = Activation::relu;
        if (kind == 3) {
          run.epilogue.activation = Activation::silu;
          run.epilogue.first = 1.0f;
        }
        run.expect_right();
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
}

TEST(Conv, PlainShapes) {
  for_each_level([] {
    for (const ConvShape& s :
         {shape(16, 32, 9, 9, 1, 1, 0), shape(17, 33, 5, 7, 1, 1, 0), shape(64, 16, 8, 8, 1, 2, 0),
          shape(3, 40, 21, 23, 7, 2, 3), shape(1, 5, 12, 40, 3, 1, 1), shape(4, 8, 10, 10, 3, 2, 1),
          shape(16, 48, 7, 7, 3, 1, 1), shape(32, 24, 15, 31, 3, 2, 1),
          shape(20, 16, 11, 9, 3, 1, 0), shape(18, 20, 13, 13, 5, 1, 2),
          shape(16, 16, 12, 12, 3, 1, 2, 2), shape(5, 7, 1, 1, 1, 1, 0), shape(9, 9, 6, 6, 6, 1, 0),
          shape(3, 3, 4, 4, 3, 3, 4)}) {
      expect_every_layout(s);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// Sums of f64 are those of f64 rounded once, bias, what rounding took from it and residual
// included.
TEST(Conv, ExactSums) {
  for_each_level([] {
    for (const ConvShape& s :
         {shape(16, 32, 9, 9, 1, 1, 0), shape(40, 33, 5, 7, 1, 1, 0), shape(24, 48, 8, 8, 1, 2, 0),
          shape(300, 16, 4, 4, 1, 1, 0), shape(3, 40, 21, 23, 3, 2, 1),
          shape(1, 5, 12, 40, 3, 1, 1), shape(20, 24, 9, 15, 3, 2, 1), shape(96, 70, 8, 8, 5, 1, 2),
          shape(9, 7, 1, 1, 1, 1, 0), shape(64, 32, 8, 8, 3, 1, 2, 2, 2),
          shape(24, 24, 9, 31, 3, 1, 1, 1, 24), shape(40, 40, 12, 14, 5, 2, 2, 1, 40),
          shape(17, 17, 7, 20, 3, 1, 2, 2, 17)}) {
      for (Layout in : {Layout::nchw, Layout::blocked})
        for (Layout out : {Layout::nchw, Layout::blocked}) {
          if (!conv_supported(s, in, out)) continue;
          for (int kind = 0; kind < 4; ++kind) {
            Trial run{.s = s,
                      .in = in,
                      .out = out,
                      .bias = kind != 0,
                      .residual = kind == 3 && s.groups != s.in_channels,
                      .rest = kind >= 2,
                      .exact = true};
            if (kind == 2) run.epilogue.activation = Activation::relu;
            run.expect_right();
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
    }
  });
}

// Weights of a panel are more than stays near: passes over some kernel positions each, whose sums
// are in parts that end within a pass.
TEST(Conv, WeightsInPasses) {
  for_each_level([] {
    for (const ConvShape& s : {shape(250, 150, 9, 9, 3, 2, 1), shape(90, 70, 8, 8, 5, 1, 2),
                               shape(480, 64, 5, 5, 3, 1, 1, 1, 2)}) {
      for (Layout out : {Layout::nchw, Layout::blocked}) {
        if (!conv_supported(s, Layout::blocked, out)) continue;
        Trial run{.s = s, .in = Layout::blocked, .out = out, .bias = true, .rest = true};
        run.residual = true;
        run.expect_right();
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// One and many values that are too small to change it one by one, but not a part of them together.
TEST(Conv, LongSumsAreOneChain) {
  for_each_level([] {
    constexpr float kSmall = 0x1p-25f;
    // The last in passes over its kernel positions.
    for (ConvShape s : {shape(40, 80, 7, 6, 1, 1, 0), shape(300, 64, 5, 5, 1, 2, 0),
                        shape(600, 20, 3, 3, 1, 1, 0), shape(250, 150, 9, 9, 3, 2, 0)})
      for (const bool long_sums : {false, true}) {
        s.batch = 1;
        ThreadPool pool(2);
        const size_t inputs = s.in_channels * s.kernel_height * s.kernel_width;
        std::vector<float> w(s.out_channels * inputs, kSmall);
        for (size_t o = 0; o < s.out_channels; ++o) w[o * inputs] = 1;
        AlignedBytes packed = poisoned_scratch(packed_conv_weight_bytes(s, Layout::blocked));
        pack_conv_weights(s, Layout::blocked, w.data(), packed.as<float>().data());
        AlignedBytes x = poisoned_scratch(channel_blocks(s.in_channels) * kChannelBlock *
                                          s.in_height * s.in_width * sizeof(float)),
                     y = poisoned_scratch(channel_blocks(s.out_channels) * kChannelBlock *
                                          s.out_height * s.out_width * sizeof(float));
        std::ranges::fill(x.as<float>(), 1.0f);
        const Conv job{.shape = s,
                       .input_layout = Layout::blocked,
                       .output_layout = Layout::blocked,
                       .input = x.as<float>().data(),
                       .packed_weights = packed.as<float>().data(),
                       .output = y.as<float>().data(),
                       .long_sums = long_sums};
        AlignedBytes scratch = poisoned_scratch(conv_scratch_bytes(job));
        conv(job, scratch.data(), pool);
        const size_t pixels = s.out_height * s.out_width;
        for (size_t o = 0; o < s.out_channels; ++o)
          for (size_t p = 0; p < pixels; ++p) {
            const float sum =
                y.as<float>()[(o / kChannelBlock * pixels + p) * kChannelBlock + o % kChannelBlock];
            if (long_sums)
              ASSERT_EQ(sum, 1.0f) << inputs << " terms, output " << o << ", pixel " << p;
            else
              ASSERT_GT(sum, 1.0f) << inputs << " terms, output " << o << ", pixel " << p;
          }
      }
  });
}

TEST(Conv, GroupsAndDepthwise) {
  for_each_level([] {
    for (const ConvShape& s :
         {shape(32, 64, 9, 9, 3, 1, 1, 1, 2), shape(12, 24, 9, 9, 3, 1, 1, 1, 3),
          shape(64, 32, 6, 6, 1, 1, 0, 1, 2), shape(40, 20, 9, 8, 3, 2, 1, 1, 4),
          shape(6, 12, 7, 9, 3, 1, 1, 1, 6),  // two outputs a channel: not depthwise
          shape(16, 16, 20, 21, 3, 1, 1, 1, 16), shape(35, 35, 14, 14, 3, 2, 1, 1, 35),
          shape(20, 20, 14, 14, 3, 1, 1, 1, 20), shape(20, 20, 5, 14, 5, 1, 2, 1, 20),
          shape(20, 20, 7, 7, 3, 1, 1, 1, 20), shape(20, 20, 7, 7, 5, 1, 2, 1, 20),
          shape(24, 24, 17, 33, 5, 1, 2, 1, 24), shape(33, 33, 15, 15, 5, 2, 2, 1, 33),
          shape(16, 16, 13, 13, 3, 1, 2, 2, 16), shape(18, 18, 9, 9, 7, 1, 3, 1, 18),
          shape(20, 20, 2, 2, 3, 1, 1, 1, 20), shape(20, 20, 3, 1, 3, 2, 1, 1, 20)}) {
      expect_every_layout(s);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// Rows end in runs of pixels of every length, beside margins and without.
TEST(Conv, DepthwiseOfEveryWidth) {
  for_each_level([] {
    for (size_t width = 1; width <= 36; ++width)
      for (size_t kernel : {3, 5})
        for (size_t stride : {1, 2})
          for (size_t pad : {size_t{0}, kernel / 2}) {
            if (width + 2 * pad < kernel) continue;
            Trial run{.s = shape(20, 20, 6, width, kernel, stride, pad, 1, 20),
                      .in = Layout::blocked,
                      .out = width % 3 == 0 ? Layout::nchw : Layout::blocked,
                      .bias = width % 5 != 0,
                      .residual = width % 7 == 0};
            if (width % 2 == 0) run.epilogue.activation = Activation::relu;
            if (width % 4 == 3) run.epilogue.alpha = 0.75f;
            run.expect_right();
            if (::testing::Test::HasFatalFailure()) return;
          }
  });
}

TEST(Conv, OneDimensionAndUnevenPads) {
  for_each_level([] {
    ConvShape s = shape(8, 20, 1, 50, 1, 1, 0);  // one dimension, long kernel
    s.kernel_width = 11;
    s.stride_width = 4;
    s.pad_left = 3;
    s.out_width = conv_output_size(50, 5, 11, 4, 1);
    expect_every_layout(s);
    s = shape(16, 16, 9, 9, 3, 1, 1);
    s.pad_top = 2;  // two rows above, none below; one column left, three right
    s.out_height = conv_output_size(9, 2, 3, 1, 1);
    s.out_width = conv_output_size(9, 4, 3, 1, 1);
    expect_every_layout(s);
    s.kernel_height = 1;
    s.kernel_width = 5;
    s.out_height = 9 + 2;
    s.out_width = conv_output_size(9, 4, 5, 1, 1);
    expect_every_layout(s);
  });
}

// Some taps meet the margin alone, before the image, behind it or both: they are left out.
TEST(Conv, ImagesSmallerThanTheKernel) {
  for_each_level([] {
    for (const size_t kernel : {3, 5, 6})
      for (const size_t width : {1, 2, 3})
        for (const size_t stride : {1, 2})
          for (const size_t dilation : {1, 2}) {
            const size_t pad = kernel / 2 * dilation + stride - 1;
            for (const size_t groups : {1, 2}) {
              ConvShape s = shape(32, 64, 2, width, kernel, stride, pad, dilation, groups);
              expect_every_layout(s);
              s.in_height = s.kernel_height = s.out_height = s.stride_height = 1;
              s.pad_top = 0;
              expect_every_layout(s);
              if (::testing::Test::HasFatalFailure()) return;
            }
            expect_every_layout(shape(3, 17, 1, width, kernel, stride, pad, dilation));
            if (::testing::Test::HasFatalFailure()) return;
          }
    ConvShape s = shape(17, 20, 1, 2, 1, 1, 0);  // nothing but margin
    s.kernel_width = 3;
    s.pad_left = 7;
    s.out_width = 3;
    expect_every_layout(s);
  });
}

TEST(Conv, Winograd) {
  for_each_level([] {
    for (ConvShape s : {shape(16, 16, 8, 8, 3, 1, 1), shape(20, 40, 7, 7, 3, 1, 1),
                        shape(64, 33, 13, 19, 3, 1, 0), shape(3, 5, 4, 5, 3, 1, 1),
                        shape(32, 64, 30, 31, 3, 1, 2), shape(1, 1, 3, 3, 3, 1, 0),
                        shape(150, 40, 8, 16, 3, 1, 1), shape(150, 48, 13, 17, 3, 1, 1),
                        shape(17, 16, 12, 8, 3, 1, 1)}) {
      s.algorithm = ConvAlgorithm::winograd;
      EXPECT_FALSE(conv_supported(s, Layout::nchw, Layout::blocked));
      expect_every_layout(s);
      if (::testing::Test::HasFatalFailure()) return;
    }
    ConvShape s = shape(48, 48, 40, 40, 3, 1, 1);  // several blocks of tiles
    s.algorithm = ConvAlgorithm::winograd;
    Trial run{.s = s, .in = Layout::blocked, .out = Layout::blocked, .bias = true, .threads = 1};
    run.expect_right();
    const std::vector<float> one = run.result();
    run.threads = 3;
    EXPECT_EQ(one, run.result());
    run.s.batch = 1;
    const std::vector<float> first = run.result();
    EXPECT_EQ(first, std::vector<float>(one.begin(), one.begin() + ptrdiff_t(first.size())));
  });
}

// What best_conv_algorithm promises about errors.
TEST(Conv, WinogradErrorsAreSmallAgainstTheRange) {
  for (size_t channels : {64, 512}) {
    ConvShape s = shape(channels, 32, 14, 14, 3, 1, 1);
    for (ConvAlgorithm algorithm : {ConvAlgorithm::direct, ConvAlgorithm::winograd}) {
      s.algorithm = algorithm;
      Trial run{.s = s, .in = Layout::blocked, .out = Layout::blocked};
      const std::vector<float> got = run.result();
      const std::vector<double> right = reference(s, random_values(s.batch * channels * 196, 1),
                                                  random_values(channels * 32 * 9, 2), false);
      double low = HUGE_VAL, high = -HUGE_VAL, error = 0;
      for (size_t i = 0; i < right.size(); ++i) {
        low = std::min(low, right[i]);
        high = std::max(high, right[i]);
        error = std::max(error, std::abs(got[i] - right[i]));
      }
      RecordProperty("error", std::to_string(error / (high - low)));
      EXPECT_LE(error / (high - low), algorithm == ConvAlgorithm::winograd ? 3e-6 : 1.5e-6)
          << channels << " channels, algorithm " << int(algorithm);
    }
  }
}

// The mean of output - right over all pixels of a channel, in units of the right value; the largest
// of all channels. Right values are near 5 times the depth; inputs and weights are all positive.
double shared_error(const ConvShape& s, double bias) {
  std::vector<float> x = random_values(s.batch * s.in_channels * s.in_height * s.in_width, 1);
  std::vector<float> w = random_values(
      s.in_channels / s.groups * s.out_channels * s.kernel_height * s.kernel_width, 2);
  for (float& value : x) value += 5;
  for (float& value : w) value = std::abs(value) + 0.5f;
  const std::vector<double> right = reference(s, x, w, false);
  const auto values = std::vector<float>(s.out_channels, static_cast<float>(bias));
  const auto rest =
      std::vector<float>(s.out_channels, static_cast<float>(bias - double{values[0]}));
  const size_t in_pixels = s.in_height * s.in_width, pixels = s.out_height * s.out_width;
  const auto blocked = [&](size_t channels, size_t count) {
    return poisoned_scratch(s.batch * channel_blocks(channels) * kChannelBlock * count *
                            sizeof(float));
  };
  AlignedBytes packed = poisoned_scratch(packed_conv_weight_bytes(s, Layout::blocked));
  AlignedBytes input = blocked(s.in_channels, in_pixels), output = blocked(s.out_channels, pixels);
  pack_conv_weights(s, Layout::blocked, w.data(), packed.as<float>().data());
  ThreadPool& pool = ThreadPool::shared();
  to_blocked(s.batch, s.in_channels, in_pixels, x.data(), input.as<float>().data(), pool);
  Conv conv{.shape = s,
            .input_layout = Layout::blocked,
            .output_layout = Layout::blocked,
            .input = input.as<float>().data(),
            .packed_weights = packed.as<float>().data(),
            .output = output.as<float>().data(),
            .bias_rest = rest.data()};
  conv.epilogue.bias = values.data();
  AlignedBytes scratch = poisoned_scratch(conv_scratch_bytes(conv));
  dense::conv(conv, scratch.data(), pool);
  std::vector<float> y(right.size());
  from_blocked(s.batch, s.out_channels, pixels, conv.output, y.data(), pool);
  double worst = 0;
  for (size_t c = 0; c < s.out_channels; ++c) {
    double sum = 0;
    for (size_t i = c * pixels; i < (c + 1) * pixels; ++i)
      sum += (y[i] - (right[i] + bias)) / std::abs(right[i]);
    worst = std::max(worst, std::abs(sum) / static_cast<double>(pixels));
  }
  return worst;
}

// Errors that all pixels share are kept by the sums of the layers that follow.
TEST(Conv, PixelsShareNoErrorOfABias) {
  for_each_level([] {
    // Half a unit in the last place of the bias would be 3e-8 of it.
    EXPECT_LE(shared_error(shape(16, 16, 60, 60, 1, 1, 0), -65.0 - 3.7e-6), 1e-8);
    EXPECT_LE(shared_error(shape(16, 16, 60, 60, 3, 1, 0, 1, 16), -33.0 - 1.8e-6), 1e-8);
  });
}

TEST(Conv, ErrorsOfLongSumsAreThoseOfTheirParts) {
  for_each_level([] {
    // In one chain of 4,608 positive terms: 8e-7.
    const ConvShape s = shape(512, 16, 5, 5, 3, 1, 0);
    EXPECT_LE(shared_error(s, 0.0), 4e-7);
  });
}

// Constants of the transforms, too, are the same for every pixel.
TEST(Conv, PixelsShareNoErrorOfWinogradsConstants) {
  for_each_level([] {
    ConvShape s = shape(64, 16, 42, 42, 3, 1, 0);
    s.algorithm = ConvAlgorithm::winograd;
    EXPECT_LE(shared_error(s, 0.0), 2.5e-8);  // with rounded divisors: 7e-8
  });
}

// The root of the mean square of output - right, in units of that of right.
double mean_error(const ConvShape& s) {
  const std::vector<float> got =
      Trial{.s = s, .in = Layout::blocked, .out = Layout::blocked}.result();
  const std::vector<double> right = reference(
      s, random_values(s.batch * s.in_channels * s.in_height * s.in_width, 1),
      random_values(s.in_channels * s.out_channels * s.kernel_height * s.kernel_width, 2), false);
  double errors = 0, squares = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    errors += (got[i] - right[i]) * (got[i] - right[i]);
    squares += right[i] * right[i];
  }
  return std::sqrt(errors / squares);
}

// In parentheses: in chains of 128 terms.
TEST(Conv, SumsAreInShortParts) {
  for_each_level([] {
    EXPECT_LE(mean_error(shape(480, 32, 9, 9, 1, 1, 0)), 1.5e-7);          // (2.0e-7)
    EXPECT_LE(mean_error(shape(128, 32, 9, 9, 1, 1, 0)), 1.2e-7);          // (2.1e-7)
    EXPECT_LE(mean_error(shape(32, 32, 20, 20, 5, 1, 0, 1, 32)), 7.8e-8);  // (9.1e-8)
    for (const size_t size : {10, 22}) {                                   // few squares, many
      ConvShape s = shape(512, 16, size, size, 3, 1, 0);
      s.algorithm = ConvAlgorithm::winograd;
      EXPECT_LE(mean_error(s), 7.5e-7);  // (1.9e-6, 1.0e-6)
    }
  });
}

TEST(Conv, EmptyOutput) {
  Trial run{.s = shape(4, 4, 2, 2, 3, 1, 0)};
  EXPECT_TRUE(run.result().empty());
}

TEST(Conv, Transposed) {
  for_each_level([] {
    for (size_t stride : {1, 2, 3})
      for (size_t kernel : {1, 2, 3, 4, 5})
        for (size_t dilation : {1, 2})
          for (size_t groups : {1, 2}) {
            ConvShape s = shape(6, 10, 5, 7, kernel, stride, kernel > 2 ? 1 : 0, dilation, groups);
            s.out_height = (s.in_height - 1) * stride + dilation * (kernel - 1) + 1 - 2 * s.pad_top;
            s.out_width = (s.in_width - 1) * stride + dilation * (kernel - 1) + 1 - 2 * s.pad_left +
                          (stride > 1 ? 1 : 0);  // output padding
            Trial run{.s = s, .transposed = true, .bias = true, .residual = stride == 2};
            run.expect_right();
            if (::testing::Test::HasFatalFailure()) return;
          }
  });
}

TEST(Conv, BitsDependNeitherOnThreadsNorOnLayouts) {
  for_each_level([] {
    for (const ConvShape& s :
         {shape(32, 32, 19, 19, 3, 1, 1), shape(32, 32, 19, 19, 3, 1, 1, 1, 32),
          shape(48, 40, 14, 14, 1, 1, 0), shape(40, 200, 14, 14, 1, 1, 0),
          shape(250, 150, 9, 9, 3, 2, 1)}) {
      Trial run{.s = s, .in = Layout::blocked, .out = Layout::blocked, .bias = true, .threads = 1};
      const std::vector<float> one = run.result();
      run.threads = 3;
      EXPECT_EQ(one, run.result());
      run.in = run.out = Layout::nchw;
      EXPECT_EQ(one, run.result());
      run.s.batch = 1;
      const std::vector<float> first = run.result();
      EXPECT_EQ(first, std::vector<float>(one.begin(), one.begin() + ptrdiff_t(first.size())));
    }
  });
}

TEST(Conv, ProgramSeesEveryValueOnce) {
  for (Layout out : {Layout::nchw, Layout::blocked})
    for (size_t groups : {1, 16}) {
      Trial run{.s = shape(16, 16, 9, 9, 3, 1, 1, 1, groups), .out = out};
      std::vector<int> seen(2 * 16 * 81);
      run.epilogue.program = [](void* context, float*, size_t count, size_t offset) {
        for (size_t i = 0; i < count; ++i) ++(*static_cast<std::vector<int>*>(context))[offset + i];
      };
      run.epilogue.program_context = &seen;
      run.expect_right();
      for (int count : seen) ASSERT_EQ(count, 1);
    }
}

}  // namespace
}  // namespace hologram::backends::dense
