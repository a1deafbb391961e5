#include "backends/cpu/dense/pool.h"

#include <bit>
#include <cmath>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

double right_value(const Pool& p, const float* in, size_t y, size_t x) {
  double sum = 0, high = -HUGE_VAL;
  size_t inside = 0, padded = 0;
  for (size_t ky = 0; ky < p.kernel_height; ++ky)
    for (size_t kx = 0; kx < p.kernel_width; ++kx) {
      const auto iy =
          ptrdiff_t(y * p.stride_height + ky * p.dilation_height) - ptrdiff_t(p.pad_top);
      const auto ix = ptrdiff_t(x * p.stride_width + kx * p.dilation_width) - ptrdiff_t(p.pad_left);
      if (iy < ptrdiff_t(p.in_height + p.pad_bottom) && ix < ptrdiff_t(p.in_width + p.pad_right))
        ++padded;
      if (iy < 0 || ix < 0 || iy >= ptrdiff_t(p.in_height) || ix >= ptrdiff_t(p.in_width)) continue;
      ++inside;
      sum += in[size_t(iy) * p.in_width + size_t(ix)];
      high = std::max(high, double(in[size_t(iy) * p.in_width + size_t(ix)]));
    }
  if (p.kind == PoolKind::max) return high;
  const size_t cells = p.include_pad ? padded : inside;
  return cells == 0 ? 0 : sum / double(cells);
}

void expect_right(Pool p) {
  const size_t in_pixels = p.in_height * p.in_width, out_pixels = p.out_height * p.out_width;
  const std::vector<float> x = random_values(p.batch * p.channels * in_pixels, 1);
  const size_t blocks = channel_blocks(p.channels);
  for (Layout layout : {Layout::nchw, Layout::blocked}) {
    p.layout = layout;
    std::vector<float> in = x, out(p.batch * blocks * kChannelBlock * out_pixels, NAN),
                       y(p.batch * p.channels * out_pixels);
    if (layout == Layout::blocked) {
      in.resize(p.batch * blocks * kChannelBlock * in_pixels);
      to_blocked(p.batch, p.channels, in_pixels, x.data(), in.data(), ThreadPool::shared());
    }
    p.x = in.data();
    p.y = out.data();
    pool(p, ThreadPool::shared());
    if (layout == Layout::blocked)
      from_blocked(p.batch, p.channels, out_pixels, out.data(), y.data(), ThreadPool::shared());
    else
      y.assign(out.begin(), out.begin() + ptrdiff_t(y.size()));
    for (size_t i = 0; i < y.size(); ++i) {
      const double right = right_value(p, x.data() + i / out_pixels * in_pixels,
                                       i % out_pixels / p.out_width, i % p.out_width);
      if (std::isinf(right)) {
        ASSERT_EQ(y[i], float(right));
      } else {
        ASSERT_NEAR(y[i], right, 1e-6) << "at " << i;
      }
    }
  }
}

TEST(Pool, Windows) {
  for_each_level([] {
    for (PoolKind kind : {PoolKind::max, PoolKind::average})
      for (bool include_pad : {false, true})
        for (size_t kernel : {1, 2, 3, 5})
          for (size_t stride : {1, 2, 3})
            for (size_t dilation : {1, 2}) {
              Pool p{.kind = kind, .batch = 2, .channels = 19, .in_height = 13, .in_width = 40};
              p.kernel_height = p.kernel_width = kernel;
              p.stride_height = p.stride_width = stride;
              p.dilation_height = p.dilation_width = dilation;
              p.pad_top = p.pad_left = kernel / 2;
              p.pad_bottom = p.pad_right = kernel / 2;
              p.include_pad = include_pad;
              // One more than fits: what ceil_mode asks for.
              p.out_height = conv_output_size(13, kernel / 2 * 2, kernel, stride, dilation) + 1;
              p.out_width = conv_output_size(40, kernel / 2 * 2, kernel, stride, dilation) + 1;
              expect_right(p);
              if (::testing::Test::HasFatalFailure()) return;
            }
  });
}

TEST(Pool, WideRowsAndWideWindows) {
  Pool p{.kind = PoolKind::average, .channels = 2, .in_height = 2, .in_width = 3000};
  p.kernel_height = 2;
  p.kernel_width = 3;
  p.stride_width = 2;
  p.out_width = conv_output_size(3000, 0, 3, 2, 1);
  expect_right(p);
  p.kernel_width = 1500;
  p.out_width = conv_output_size(3000, 0, 1500, 2, 1);
  expect_right(p);
}

// Images of bf16 give what the same values in f32 give: infinities, zeros and NaNs of both signs
// too.
TEST(Pool, MaximaOfBf16) {
  constexpr uint16_t kOdd[] = {0x7f80, 0xff80, 0x0000, 0x8000, 0x7fc0, 0xffc0, 0x0001, 0x8001};
  for_each_level([&] {
    for (size_t width : {1, 2, 7, 40, 600})
      for (size_t kernel : {1, 2, 3, 300})
        for (size_t stride : {1, 2}) {
          Pool p{.layout = Layout::blocked, .channels = 16, .in_height = 6, .in_width = width};
          p.kernel_height = std::min<size_t>(kernel, 3);
          p.kernel_width = kernel;
          p.stride_height = p.stride_width = stride;
          p.pad_top = p.pad_left = kernel / 2;
          p.out_height = conv_output_size(6, kernel / 2 * 2, p.kernel_height, stride, 1) + 1;
          p.out_width = conv_output_size(width, kernel / 2 * 2, kernel, stride, 1) + 1;
          const std::vector<float> drawn = random_values(6 * width * kChannelBlock, 9);
          std::vector<uint16_t> halves(drawn.size());
          std::vector<float> values(drawn.size());
          for (size_t i = 0; i < drawn.size(); ++i) {
            halves[i] = i % 11 == 0 ? kOdd[i / 11 % std::size(kOdd)]
                                    : uint16_t(std::bit_cast<uint32_t>(drawn[i]) >> 16);
            values[i] = std::bit_cast<float>(uint32_t{halves[i]} << 16);
          }
          std::vector<float> right(p.out_height * p.out_width * kChannelBlock);
          std::vector<uint16_t> maxima(right.size());
          p.x = values.data();
          p.y = right.data();
          pool(p, ThreadPool::shared());
          p.x_bf16 = halves.data();
          p.y_bf16 = maxima.data();
          pool(p, ThreadPool::shared());
          for (size_t i = 0; i < right.size(); ++i) {
            const size_t pixel = i / kChannelBlock, y = pixel / p.out_width;
            double expected = -HUGE_VAL;
            for (size_t ky = 0; ky < p.kernel_height; ++ky)
              for (size_t kx = 0; kx < kernel; ++kx) {
                const size_t row = y * stride + ky - p.pad_top;
                const size_t column = pixel % p.out_width * stride + kx - p.pad_left;
                if (row >= 6 || column >= width) continue;  // below 0 as well
                const float value = values[(row * width + column) * kChannelBlock + i % 16];
                if (!std::isnan(expected) && !(value <= expected)) expected = value;
              }
            const float half = std::bit_cast<float>(uint32_t{maxima[i]} << 16);
            if (std::isnan(expected)) {
              ASSERT_TRUE(std::isnan(right[i]) && std::isnan(half)) << i;
            } else {
              ASSERT_EQ(right[i], float(expected)) << i;
              ASSERT_EQ(half, float(expected)) << i;
            }
          }
        }
  });
}

TEST(Pool, GlobalAverage) {
  for_each_level([] {
    for (size_t pixels : {1, 7, 49, 1000})
      for (size_t channels : {1, 16, 40}) {
        const std::vector<float> x = random_values(2 * channels * pixels, 5);
        std::vector<float> in(2 * channel_blocks(channels) * 16 * pixels),
            blocked(2 * channel_blocks(channels) * 16), y(2 * channels);
        to_blocked(2, channels, pixels, x.data(), in.data(), ThreadPool::shared());
        global_average(Layout::nchw, 2, channels, pixels, x.data(), y.data(), ThreadPool::shared());
        global_average(Layout::blocked, 2, channels, pixels, in.data(), blocked.data(),
                       ThreadPool::shared());
        for (size_t n = 0; n < 2; ++n)
          for (size_t c = 0; c < channels; ++c) {
            double sum = 0;
            for (size_t i = 0; i < pixels; ++i) sum += x[(n * channels + c) * pixels + i];
            EXPECT_NEAR(y[n * channels + c], sum / double(pixels), 1e-6);
            EXPECT_NEAR(blocked[n * channel_blocks(channels) * 16 + c], sum / double(pixels), 1e-6);
          }
      }
  });
}

// By one thread and by three, by parts of pixels and by planes.
TEST(Pool, GlobalAveragesAreTheSameForAllThreads) {
  ThreadPool one(1), three(3);
  for (size_t pixels : {255, 257, 3136, 12544, 70000})
    for (size_t channels : {16, 40, 400}) {
      const std::vector<float> x = random_values(channel_blocks(channels) * 16 * pixels, 7);
      std::vector<float> alone(channel_blocks(channels) * 16), together(alone.size());
      global_average(Layout::blocked, 1, channels, pixels, x.data(), alone.data(), one);
      global_average(Layout::blocked, 1, channels, pixels, x.data(), together.data(), three);
      EXPECT_EQ(alone, together) << pixels << " pixels, " << channels << " channels";
    }
}

TEST(Pool, GlobalAverageOfALargeImage) {
  for_each_level([] {
    constexpr size_t kPixels = 20000;
    std::vector<float> x = random_values(16 * kPixels, 6);
    for (float& value : x) value += 10;
    std::vector<float> y(16);
    global_average(Layout::blocked, 1, 16, kPixels, x.data(), y.data(), ThreadPool::shared());
    for (size_t c = 0; c < 16; ++c) {
      long double sum = 0;
      for (size_t i = 0; i < kPixels; ++i) sum += x[i * 16 + c];
      EXPECT_NEAR(y[c] / static_cast<double>(sum / kPixels), 1, 6e-7) << c;
    }
  });
}

}  // namespace
}  // namespace hologram::backends::dense
