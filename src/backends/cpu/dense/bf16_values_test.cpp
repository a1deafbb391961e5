#include "backends/cpu/dense/bf16_values.h"

#include "backends/cpu/dense/channel_scale.h"
#include "backends/cpu/dense/conv_bf16.h"
#include "backends/cpu/dense/pool.h"
#include "backends/cpu/dense/testing.h"
#include "support/dtype.h"

namespace hologram::backends::dense {
namespace {

std::vector<uint16_t> narrowed(const std::vector<float>& values) {
  std::vector<uint16_t> result;
  for (float value : values) result.push_back(f32_to_bf16(value));
  return result;
}
std::vector<float> widened(const std::vector<uint16_t>& values) {
  std::vector<float> result;
  for (uint16_t value : values) result.push_back(bf16_to_f32(value));
  return result;
}

TEST(Bf16Values, RoundAndWidenAsOneByOne) {
  for_each_level([] {
    for (size_t count : {0, 1, 15, 16, 17, 32, 47, 100}) {
      std::vector<float> values = random_values(count, 7);
      if (count > 2) values[0] = HUGE_VALF, values[1] = -0.0f, values[2] = 1.00390625f;  // a tie
      std::vector<uint16_t> bits(count + 1, 0x1234);
      narrow_values(values.data(), count, bits.data());
      EXPECT_EQ(bits[count], 0x1234);
      bits.resize(count);
      EXPECT_EQ(bits, narrowed(values));
      std::vector<float> wide(count);
      widen_values(bits.data(), count, wide.data());
      EXPECT_EQ(wide, widened(bits));
    }
    float nan = NAN;
    uint16_t bits = 0;
    narrow_values(&nan, 1, &bits);
    EXPECT_TRUE(std::isnan(bf16_to_f32(bits)));
  });
}

TEST(Bf16Values, JoinsChannelsOfPixels) {
  for_each_level([] {
    const auto values = narrowed(random_values(64 * 8, 3));
    for (size_t count : {1, 13, 16, 20, 32}) {
      std::vector<uint32_t> units(3 * 16);
      const uint16_t *first = values.data(), *second = count > 16 ? first + 256 : nullptr;
      join_pixels(first, second, 3, 48, count, units.data());
      const auto* got = reinterpret_cast<const uint16_t*>(units.data());
      for (size_t p = 0; p < 3; ++p)
        for (size_t i = 0; i < 32; ++i)
          EXPECT_EQ(got[p * 32 + i], i >= count ? 0 : (i < 16 ? first : second - 16)[p * 48 + i]);
    }
  });
}

ConvShape shape(size_t in, size_t out, size_t side, size_t kernel, size_t stride, size_t groups) {
  ConvShape s{.batch = 2, .in_channels = in, .in_height = side, .in_width = side + 3};
  s.out_channels = out;
  s.kernel_height = s.kernel_width = kernel;
  s.stride_height = s.stride_width = stride;
  s.pad_top = s.pad_left = kernel / 2;
  s.groups = groups;
  s.out_height = conv_output_size(s.in_height, 2 * s.pad_top, kernel, stride, 1);
  s.out_width = conv_output_size(s.in_width, 2 * s.pad_left, kernel, stride, 1);
  return s;
}

// An image of bf16 values gives what the same values give as f32, and a bf16 result is the f32
// result rounded.
TEST(Bf16Values, ImagesOfConvolutions) {
  for_each_level([] {
    for (const ConvShape& s :
         {shape(32, 48, 9, 1, 1, 1), shape(20, 33, 40, 1, 1, 1), shape(48, 16, 11, 1, 2, 1),
          shape(40, 24, 10, 3, 2, 1), shape(16, 40, 9, 3, 1, 1)}) {
      ThreadPool& pool = ThreadPool::shared();
      const size_t in = s.batch * channel_blocks(s.in_channels) * 16 * s.in_height * s.in_width;
      const size_t out = s.batch * channel_blocks(s.out_channels) * 16 * s.out_height * s.out_width;
      const auto x16 = narrowed(random_values(in, 1)), r16 = narrowed(random_values(out, 2));
      const auto x = widened(x16), r = widened(r16), bias = random_values(s.out_channels, 5);
      const auto w =
          random_values(s.in_channels * s.out_channels * s.kernel_height * s.kernel_width, 3);
      AlignedBytes packed = poisoned_scratch(packed_conv_bf16_bytes(s, Bf16Parts::one));
      pack_conv_bf16(s, Bf16Parts::one, w.data(), packed.data());
      ConvBf16 conv{.shape = s, .packed_weights = packed.data()};
      conv.epilogue.bias = bias.data();
      AlignedBytes scratch = poisoned_scratch(conv_bf16_scratch_bytes(conv));
      for (Activation activation : {Activation::relu, Activation::silu}) {
        conv.epilogue.activation = activation;
        conv.epilogue.first = 1.0f;
        std::vector<float> y(out);
        const auto run = [&](bool input, bool output, bool residual) {
          std::vector<uint16_t> y16(out);
          conv.input = input ? static_cast<const void*>(x16.data()) : x.data();
          conv.input_bf16 = input;
          conv.output = output ? static_cast<void*>(y16.data()) : y.data();
          conv.output_bf16 = output;
          conv.residual_bf16 = residual ? r16.data() : nullptr;
          conv.epilogue.residual = residual ? nullptr : r.data();
          conv_bf16(conv, scratch.data(), pool);
          return output ? widened(y16) : y;
        };
        const auto expected = run(false, false, false);
        const auto rounded = widened(narrowed(expected));
        for (int way = 1; way < 8; ++way) {
          const auto values = run(way & 1, way & 2, way & 4);
          if (activation == Activation::silu && (way & 2)) {  // a coarser one, by a bit at most
            for (size_t i = 0; i < out; ++i)
              ASSERT_NEAR(values[i], expected[i], 0x1.1p-8f * std::abs(expected[i]) + 1e-7f);
            continue;
          }
          EXPECT_EQ(values, way & 2 ? rounded : expected)
              << s.in_channels << " -> " << s.out_channels << " way " << way;
        }
      }
    }
  });
}

TEST(Bf16Values, ImagesOfDepthwiseConvolutions) {
  // Wider than what is widened at a time, by a stride too; dilated; margins beyond the image on the
  // right; a kernel larger than what is widened at a time.
  ConvShape wide = shape(16, 16, 301, 3, 1, 16), strided = shape(16, 16, 290, 5, 2, 16);
  ConvShape dilated = shape(16, 16, 40, 3, 1, 16), margins = shape(16, 16, 6, 3, 1, 16);
  ConvShape large = shape(16, 16, 70, 3, 1, 16);
  dilated.dilation_height = dilated.dilation_width = 5;
  dilated.out_height = dilated.out_width = 32;
  margins.out_height = margins.out_width = 12;
  large.dilation_height = large.dilation_width = 32;
  large.out_height = large.out_width = 8;
  wide.in_height = wide.out_height = 14;
  for_each_level([&] {
    for (const ConvShape& s :
         {shape(32, 32, 9, 3, 1, 32), shape(20, 20, 81, 3, 2, 20), shape(16, 16, 12, 5, 1, 16),
          shape(33, 33, 10, 7, 1, 33), wide, strided, dilated, margins, large}) {
      const size_t in = s.batch * channel_blocks(s.in_channels) * 16 * s.in_height * s.in_width;
      const size_t out = s.batch * channel_blocks(s.out_channels) * 16 * s.out_height * s.out_width;
      const auto x16 = narrowed(random_values(in, 1));
      const auto x = widened(x16), bias = random_values(s.out_channels, 5);
      const auto w = random_values(s.in_channels * s.kernel_height * s.kernel_width, 3);
      AlignedBytes packed = poisoned_scratch(packed_conv_weight_bytes(s, Layout::blocked));
      pack_conv_weights(s, Layout::blocked, w.data(), packed.as<float>().data());
      for (Activation activation : {Activation::relu, Activation::hard_swish}) {
        std::vector<float> y(out);
        Conv conv{.shape = s,
                  .input_layout = Layout::blocked,
                  .output_layout = Layout::blocked,
                  .input = x.data(),
                  .packed_weights = packed.as<float>().data(),
                  .output = y.data()};
        conv.epilogue.bias = bias.data();
        conv.epilogue.activation = activation;
        AlignedBytes scratch = poisoned_scratch(conv_scratch_bytes(conv));
        dense::conv(conv, scratch.data(), ThreadPool::shared());
        const auto expected = narrowed(y);
        std::vector<uint16_t> y16(out);
        conv.output = nullptr;
        conv.output_bf16 = y16.data();
        for (bool narrow : {false, true}) {
          conv.input = narrow ? nullptr : x.data();
          conv.input_bf16 = narrow ? x16.data() : nullptr;
          dense::conv(conv, scratch.data(), ThreadPool::shared());
          EXPECT_EQ(y16, expected) << s.in_channels << " kernel " << s.kernel_height;
        }
      }
    }
  });
}

TEST(Bf16Values, ImagesThatArePooledAndScaled) {
  for_each_level([] {
    ThreadPool& threads = ThreadPool::shared();
    const size_t blocks = 3, side = 13, in = blocks * side * side * 16;
    const auto x16 = narrowed(random_values(in, 1));
    const auto x = widened(x16);
    for (PoolKind kind : {PoolKind::max, PoolKind::average}) {
      Pool pool{.kind = kind, .layout = Layout::blocked, .channels = blocks * 16};
      pool.in_height = pool.in_width = side;
      pool.out_height = pool.out_width = 6;
      pool.kernel_height = pool.kernel_width = 3;
      pool.stride_height = pool.stride_width = 2;
      std::vector<float> y(blocks * 36 * 16);
      std::vector<uint16_t> y16(y.size());
      pool.x = x.data();
      pool.y = y.data();
      dense::pool(pool, threads);
      pool.x_bf16 = x16.data();
      pool.y_bf16 = y16.data();
      dense::pool(pool, threads);
      EXPECT_EQ(y16, narrowed(y));
    }
    std::vector<float> means(blocks * 16), same(means.size());
    global_average(Layout::blocked, 1, blocks * 16, side * side, x.data(), means.data(), threads);
    global_average_bf16(1, blocks * 16, side * side, x16.data(), same.data(), threads);
    EXPECT_EQ(same, means);

    const auto scale = random_values(blocks * 16, 3), bias = random_values(blocks * 16, 4);
    for (Activation activation :
         {Activation::none, Activation::relu, Activation::clip, Activation::leaky_relu})
      for (bool scales : {true, false})
        for (bool shifts : {true, false}) {
          ChannelScale s;
          s.part_count = 1;
          s.pixels = side * side;
          s.scale = scales ? scale.data() : nullptr;
          s.bias = shifts ? bias.data() : nullptr;
          s.activation = activation;
          s.first = -0.25f;
          s.second = 0.5f;
          std::vector<float> y(in);
          s.parts[0] = {x.data(), blocks};
          s.y = y.data();
          channel_scale(s, threads);
          const auto expected = y;
          s.parts[0] = {nullptr, blocks, x16.data()};
          channel_scale(s, threads);
          EXPECT_EQ(y, expected);
          std::vector<uint16_t> y16(in);
          s.y_bf16 = y16.data();
          channel_scale(s, threads);
          EXPECT_EQ(y16, narrowed(expected));
          if (!scales || shifts) continue;
          s.plus_one = true;
          channel_scale(s, threads);
          for (size_t i = 0; i < in; ++i) {
            const double gate = scale[i / (side * side * 16) * 16 + i % 16];
            double right = x[i] + x[i] * gate;
            if (activation == Activation::relu) right = std::max(right, 0.0);
            if (activation == Activation::clip) right = std::clamp(right, -0.25, 0.5);
            if (activation == Activation::leaky_relu && right < 0) right *= -0.25;
            ASSERT_NEAR(widened(y16)[i], right, 0.005 * std::abs(right)) << i;
          }
        }
  });
}

}  // namespace
}  // namespace hologram::backends::dense
