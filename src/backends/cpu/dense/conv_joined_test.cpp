#include "backends/cpu/dense/conv_joined.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

struct Trial {
  size_t in, between, height, width, kernel, stride, pad, dilation = 1;
  // How the first is multiplied, 0 being f32, and whether images are bf16.
  size_t parts = 0;
  bool bf16_input = false, bf16_between = false, bf16_output = false;

  ConvShape points() const {
    return {.batch = 2,
            .in_channels = in,
            .in_height = height,
            .in_width = width,
            .out_channels = between,
            .out_height = height,
            .out_width = width};
  }
  ConvShape depthwise() const {
    return {.batch = 2,
            .in_channels = between,
            .in_height = height,
            .in_width = width,
            .out_channels = between,
            .out_height = conv_output_size(height, 2 * pad, kernel, stride, dilation),
            .out_width = conv_output_size(width, 2 * pad, kernel, stride, dilation),
            .kernel_height = kernel,
            .kernel_width = kernel,
            .stride_height = stride,
            .stride_width = stride,
            .pad_top = pad,
            .pad_left = pad,
            .dilation_height = dilation,
            .dilation_width = dilation,
            .groups = between};
  }
  std::vector<float> x() const { return random_values(2 * in * height * width, 1); }
  std::vector<float> first_weights() const { return random_values(in * between, 2); }
  std::vector<float> second_weights() const { return random_values(between * kernel * kernel, 3); }
  std::vector<float> first_bias() const { return random_values(2 * between, 4); }
  std::vector<float> second_bias() const { return random_values(2 * between, 5); }

  // Blocked, as f32 whatever it was; in one step or in two.
  std::vector<float> result(bool joined, unsigned threads) const {
    ThreadPool pool(threads);
    const ConvShape p = points(), d = depthwise();
    EXPECT_TRUE(joined_conv_supported(p, d));
    const auto blocked = [&](const ConvShape& s, bool output) {
      return s.batch * channel_blocks(output ? s.out_channels : s.in_channels) * 16 *
             (output ? s.out_height * s.out_width : s.in_height * s.in_width);
    };
    AlignedBytes input = poisoned_scratch(blocked(p, false) * sizeof(float));
    to_blocked(2, in, height * width, x().data(), input.as<float>().data(), pool);
    if (bf16_input) narrow(input, blocked(p, false));
    const std::vector<float> w1 = first_weights(), w2 = second_weights(), b1 = first_bias(),
                             b2 = second_bias();
    AlignedBytes between_image = poisoned_scratch(blocked(p, true) * sizeof(float)),
                 output = poisoned_scratch(blocked(d, true) * sizeof(float)),
                 packed2 = poisoned_scratch(packed_conv_weight_bytes(d, Layout::blocked));
    pack_conv_weights(d, Layout::blocked, w2.data(), packed2.as<float>().data());
    const Bf16Parts kind = parts == 2 ? Bf16Parts::two : Bf16Parts::one;
    AlignedBytes packed1 = poisoned_scratch(parts ? packed_conv_bf16_bytes(p, kind)
                                                  : packed_conv_weight_bytes(p, Layout::blocked));
    if (parts)
      pack_conv_bf16(p, kind, w1.data(), packed1.data());
    else
      pack_conv_weights(p, Layout::blocked, w1.data(), packed1.as<float>().data());
    Epilogue relu;
    relu.activation = Activation::relu;
    relu.bias = b1.data();
    ConvBf16 narrow{.shape = p,
                    .parts = kind,
                    .input = input.data(),
                    .input_bf16 = bf16_input,
                    .packed_weights = packed1.data(),
                    .output = between_image.data(),
                    .output_bf16 = bf16_between,
                    .epilogue = relu};
    JoinedConv both{.points = {.shape = p,
                               .input_layout = Layout::blocked,
                               .output_layout = Layout::blocked,
                               .input = input.as<float>().data(),
                               .packed_weights = packed1.as<float>().data(),
                               .output = between_image.as<float>().data(),
                               .epilogue = relu,
                               .bias_rest = b1.data() + between},
                    .narrow = parts ? &narrow : nullptr,
                    .depthwise = {.shape = d,
                                  .input_layout = Layout::blocked,
                                  .output_layout = Layout::blocked,
                                  .packed_weights = packed2.as<float>().data(),
                                  .bias_rest = b2.data() + between}};
    both.depthwise.epilogue.bias = b2.data();
    both.depthwise.epilogue.activation = Activation::silu;
    both.depthwise.epilogue.first = 1.0f;
    if (bf16_output)
      both.depthwise.output_bf16 = output.as<uint16_t>().data();
    else
      both.depthwise.output = output.as<float>().data();
    if (joined) {
      AlignedBytes scratch = poisoned_scratch(joined_conv_scratch_bytes(both, threads));
      joined_conv(both, scratch.data(), pool);
    } else {
      AlignedBytes scratch = poisoned_scratch(
          std::max({parts ? conv_bf16_scratch_bytes(narrow) : size_t{0},
                    conv_scratch_bytes(both.points), conv_scratch_bytes(both.depthwise)}));
      if (parts)
        conv_bf16(narrow, scratch.data(), pool);
      else
        conv(both.points, scratch.data(), pool);
      if (bf16_between)
        both.depthwise.input_bf16 = between_image.as<uint16_t>().data();
      else
        both.depthwise.input = between_image.as<float>().data();
      conv(both.depthwise, scratch.data(), pool);
    }
    if (bf16_output) widen(output, blocked(d, true));
    std::vector<float> plain(2 * between * d.out_height * d.out_width);
    from_blocked(2, between, d.out_height * d.out_width, output.as<float>().data(), plain.data(),
                 pool);
    return plain;
  }

  // In place: the upper halves of values, and back.
  static void narrow(AlignedBytes& values, size_t count) {
    for (size_t i = 0; i < count; ++i)
      values.as<uint16_t>()[i] =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(values.as<float>()[i]) >> 16);
  }
  static void widen(AlignedBytes& values, size_t count) {
    for (size_t i = count; i-- > 0;)
      values.as<float>()[i] =
          std::bit_cast<float>(static_cast<uint32_t>(values.as<uint16_t>()[i]) << 16);
  }

  // The same in long double.
  std::vector<long double> right() const {
    const ConvShape d = depthwise();
    const std::vector<float> a = x(), w1 = first_weights(), w2 = second_weights(),
                             b1 = first_bias(), b2 = second_bias();
    std::vector<long double> result;
    std::vector<long double> image(height * width);
    for (size_t n = 0; n < 2; ++n)
      for (size_t c = 0; c < between; ++c) {
        for (size_t i = 0; i < image.size(); ++i) {
          long double sum = static_cast<long double>(b1[c]) + b1[between + c];
          for (size_t k = 0; k < in; ++k)
            sum += static_cast<long double>(w1[c * in + k]) * a[(n * in + k) * image.size() + i];
          image[i] = std::max(sum, 0.0L);
        }
        for (size_t y = 0; y < d.out_height; ++y)
          for (size_t v = 0; v < d.out_width; ++v) {
            long double sum = static_cast<long double>(b2[c]) + b2[between + c];
            for (size_t ky = 0; ky < kernel; ++ky)
              for (size_t kx = 0; kx < kernel; ++kx) {
                const size_t row = y * stride + ky * dilation, column = v * stride + kx * dilation;
                if (row < pad || column < pad || row - pad >= height || column - pad >= width)
                  continue;
                sum +=
                    w2[(c * kernel + ky) * kernel + kx] * image[(row - pad) * width + column - pad];
              }
            result.push_back(sum / (1 + std::exp(-sum)));
          }
      }
    return result;
  }
};

const Trial kTrials[] = {
    {.in = 16, .between = 96, .height = 60, .width = 41, .kernel = 3, .stride = 2, .pad = 1},
    {.in = 20, .between = 40, .height = 100, .width = 90, .kernel = 3, .stride = 1, .pad = 1},
    {.in = 33, .between = 17, .height = 7, .width = 5, .kernel = 5, .stride = 1, .pad = 2},
    {.in = 3,
     .between = 150,
     .height = 64,
     .width = 30,
     .kernel = 3,
     .stride = 1,
     .pad = 2,
     .dilation = 2},
    {.in = 130, .between = 48, .height = 55, .width = 90, .kernel = 5, .stride = 2, .pad = 2},
    {.in = 8, .between = 64, .height = 50, .width = 60, .kernel = 3, .stride = 4, .pad = 0},
    {.in = 16, .between = 16, .height = 2, .width = 2, .kernel = 3, .stride = 1, .pad = 4}};

TEST(JoinedConv, IsRight) {
  for_each_level([] {
    for (const Trial& trial : kTrials) {
      const std::vector<float> got = trial.result(true, 2);
      const std::vector<long double> right = trial.right();
      ASSERT_EQ(got.size(), right.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], static_cast<double>(right[i]), 4e-5)
            << trial.in << " to " << trial.between << " at " << i;
    }
  });
}

TEST(JoinedConv, HasTheBitsOfTwoStepsOnAnyNumberOfThreads) {
  for (Trial trial : kTrials)
    for (size_t form = 0; form < 5; ++form) {
      trial.parts = form > 2 ? 1 : form;
      trial.bf16_between = form >= 3;
      trial.bf16_input = trial.bf16_output = form == 4;
      const std::vector<float> two = trial.result(false, 1);
      for (unsigned threads : {1, 2, 3, 16})
        ASSERT_EQ(trial.result(true, threads), two)
            << trial.in << " to " << trial.between << ", form " << form << ", threads " << threads;
    }
}

TEST(JoinedConv, KnowsWhatItCannotDo) {
  const Trial trial = kTrials[0];
  ConvShape points = trial.points();
  points.kernel_width = 3;
  EXPECT_FALSE(joined_conv_supported(points, trial.depthwise()));
  points = trial.points();
  points.stride_width = 2;
  EXPECT_FALSE(joined_conv_supported(points, trial.depthwise()));
  points = trial.points();
  points.out_channels = 80;
  EXPECT_FALSE(joined_conv_supported(points, trial.depthwise()));
  ConvShape depthwise = trial.depthwise();
  depthwise.groups = 1;
  EXPECT_FALSE(joined_conv_supported(trial.points(), depthwise));
  depthwise = trial.depthwise();
  depthwise.in_height = 59;
  EXPECT_FALSE(joined_conv_supported(trial.points(), depthwise));
}

}  // namespace
}  // namespace hologram::backends::dense
