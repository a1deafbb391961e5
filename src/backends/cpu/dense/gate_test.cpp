#include "backends/cpu/dense/gate.h"

#include <limits>

#include "backends/cpu/dense/bf16_values.h"
#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

using Wide = long double;

struct Case {
  size_t batch, channels, hidden, pixels;
  bool biased, plus_one;
  Activation squeeze, excite, after;
};

struct Layers {
  std::vector<float> squeeze, excite, squeeze_bias,
      excite_bias;  // biases: values, then their rests
  std::vector<float> squeeze_packed, excite_packed;

  explicit Layers(const Case& c)
      : squeeze(random_values(c.hidden * c.channels, 1)),
        excite(random_values(c.channels * c.hidden, 2)),
        squeeze_bias(random_values(2 * c.hidden, 3)),
        excite_bias(random_values(2 * c.channels, 4)),
        squeeze_packed(pack(c.channels, c.hidden, squeeze)),
        excite_packed(pack(c.hidden, c.channels, excite)) {
    for (size_t i = 0; i < c.hidden; ++i) squeeze_bias[c.hidden + i] *= 1e-8f;
    for (size_t i = 0; i < c.channels; ++i) excite_bias[c.channels + i] *= 1e-8f;
  }

  static std::vector<float> pack(size_t inputs, size_t outputs, const std::vector<float>& weights) {
    std::vector<float> packed(gate_weight_bytes(inputs, outputs) / sizeof(float));
    pack_conv_weights({.in_channels = inputs, .out_channels = outputs}, Layout::blocked,
                      weights.data(), packed.data());
    return packed;
  }
};

// Parameters that the activations here are tested with.
constexpr float kFirst = 0.2f, kSecond = 0.5f;

Epilogue epilogue(Activation activation) {
  Epilogue e;
  e.activation = activation;
  e.first = activation == Activation::clip ? -0.25f : kFirst;
  e.second = activation == Activation::hard_swish ? 0.0f : kSecond;
  return e;
}

Wide clamped(Wide x, Wide low, Wide high) { return x < low ? low : x > high ? high : x; }
Wide activated(Activation activation, Wide x) {
  switch (activation) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::clip:
      return clamped(x, -0.25L, kSecond);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::silu:
      return x / (1 + std::exp(-Wide{kFirst} * x));
    case Activation::hard_sigmoid:
      return clamped(Wide{kFirst} * x + Wide{kSecond}, 0, 1);
    case Activation::hard_swish:
      return x * clamped(Wide{kFirst} * x + 0.5L, 0, 1);
    default:
      return x;
  }
}

Gate gate_of(const Case& c, const Layers& layers) {
  Gate g{.batch = c.batch, .pixels = c.pixels, .channels = c.channels, .hidden = c.hidden};
  g.squeeze = {layers.squeeze_packed.data(), nullptr, epilogue(c.squeeze)};
  g.excite = {layers.excite_packed.data(), nullptr, epilogue(c.excite)};
  if (c.biased) {
    g.squeeze.epilogue.bias = layers.squeeze_bias.data();
    g.squeeze.bias_rest = layers.squeeze_bias.data() + c.hidden;
    g.excite.epilogue.bias = layers.excite_bias.data();
    g.excite.bias_rest = layers.excite_bias.data() + c.channels;
  }
  g.plus_one = c.plus_one;
  g.activation = c.after;
  return g;
}

// nchw.
std::vector<Wide> expected(const Case& c, const Layers& layers, const std::vector<float>& x) {
  std::vector<Wide> y(x.size());
  for (size_t n = 0; n < c.batch; ++n) {
    std::vector<Wide> mean(c.channels), hidden(c.hidden);
    for (size_t i = 0; i < c.channels; ++i) {
      for (size_t p = 0; p < c.pixels; ++p) mean[i] += x[(n * c.channels + i) * c.pixels + p];
      mean[i] /= static_cast<Wide>(c.pixels);
    }
    for (size_t h = 0; h < c.hidden; ++h) {
      Wide sum = c.biased ? Wide{layers.squeeze_bias[h]} + layers.squeeze_bias[c.hidden + h] : 0;
      for (size_t i = 0; i < c.channels; ++i) sum += mean[i] * layers.squeeze[h * c.channels + i];
      hidden[h] = activated(c.squeeze, sum);
    }
    for (size_t i = 0; i < c.channels; ++i) {
      Wide sum = c.biased ? Wide{layers.excite_bias[i]} + layers.excite_bias[c.channels + i] : 0;
      for (size_t h = 0; h < c.hidden; ++h) sum += hidden[h] * layers.excite[i * c.hidden + h];
      const Wide gate = activated(c.excite, sum) + (c.plus_one ? 1 : 0);
      for (size_t p = 0; p < c.pixels; ++p) {
        const size_t at = (n * c.channels + i) * c.pixels + p;
        y[at] = activated(c.after, x[at] * gate);
      }
    }
  }
  return y;
}

std::vector<float> blocked(const Case& c, const std::vector<float>& x) {
  std::vector<float> result(c.batch * channel_blocks(c.channels) * kChannelBlock * c.pixels);
  to_blocked(c.batch, c.channels, c.pixels, x.data(), result.data(), ThreadPool::shared());
  // What lies beyond the channels is unspecified.
  for (size_t n = 0; n < c.batch; ++n)
    for (size_t i = c.channels; i < channel_blocks(c.channels) * kChannelBlock; ++i)
      for (size_t p = 0; p < c.pixels; ++p)
        result[((n * channel_blocks(c.channels) + i / kChannelBlock) * c.pixels + p) *
                   kChannelBlock +
               i % kChannelBlock] = NAN;
  return result;
}

std::vector<float> plain(const Case& c, const std::vector<float>& x) {
  std::vector<float> result(c.batch * c.channels * c.pixels);
  from_blocked(c.batch, c.channels, c.pixels, x.data(), result.data(), ThreadPool::shared());
  return result;
}

void run(const Gate& g, ThreadPool& pool) {
  AlignedBytes scratch = poisoned_scratch(gate_scratch_bytes(g));
  gate(g, scratch.data(), pool);
}

const Case kCases[] = {
    {1, 16, 4, 1, true, false, Activation::relu, Activation::hard_sigmoid, Activation::none},
    {2, 24, 6, 35, false, true, Activation::relu, Activation::sigmoid, Activation::relu},
    {1, 200, 50, 300, true, false, Activation::silu, Activation::sigmoid, Activation::none},
    {3, 1, 1, 7, true, false, Activation::clip, Activation::hard_swish, Activation::none},
    {1, 70, 33, 2000, true, true, Activation::none, Activation::clip, Activation::none},
    {1, 700, 400, 9, true, false, Activation::relu, Activation::hard_sigmoid, Activation::none},
};

// The image times the gate is rounded a little more than once; a gate in f32 alone would be wrong
// by as much again in every pixel of a channel, and its sums by some times that.
TEST(Gate, IsExactButForTheLastRounding) {
  for_each_level([&] {
    for (const Case& c : kCases) {
      SCOPED_TRACE(c.channels);
      const Layers layers(c);
      const std::vector<float> x = random_values(c.batch * c.channels * c.pixels, 5);
      const std::vector<Wide> wanted = expected(c, layers, x);
      std::vector<float> in = blocked(c, x), out(in.size());
      Gate g = gate_of(c, layers);
      g.x = in.data();
      g.y = out.data();
      run(g, ThreadPool::shared());
      const std::vector<float> y = plain(c, out);
      const double limit = is_fused() ? 6.1e-8 : 1.2e-7;
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_NEAR(y[i], static_cast<double>(wanted[i]),
                    limit * std::abs(static_cast<double>(wanted[i])) + 1e-13)
            << i;
    }
  });
}

TEST(Gate, HasTheSameBitsOnAnyThreadsInAnyBatchAndInPlace) {
  ThreadPool one(1), three(3);
  for (const Case& c : kCases) {
    const Layers layers(c);
    const std::vector<float> x = random_values(c.batch * c.channels * c.pixels, 6);
    std::vector<float> in = blocked(c, x), alone(in.size()), together(in.size());
    Gate g = gate_of(c, layers);
    g.x = in.data();
    g.y = alone.data();
    run(g, one);
    g.y = together.data();
    run(g, three);
    EXPECT_EQ(plain(c, alone), plain(c, together));
    const size_t sample = in.size() / c.batch;
    Gate last = g;
    last.batch = 1;
    last.x = in.data() + (c.batch - 1) * sample;
    last.y = together.data() + (c.batch - 1) * sample;
    std::fill_n(last.y, sample, 0.0f);
    run(last, one);
    EXPECT_EQ(plain(c, alone), plain(c, together));
    g.y = in.data();
    run(g, three);
    EXPECT_EQ(plain(c, alone), plain(c, in));
  }
}

TEST(Gate, ReadsAndWritesBf16) {
  const Case& c = kCases[1];
  const Layers layers(c);
  std::vector<float> x = random_values(c.batch * c.channels * c.pixels, 7);
  for (float& value : x) value = std::round(value * 64) / 64;  // bf16 has them
  const std::vector<Wide> wanted = expected(c, layers, x);
  std::vector<float> in = blocked(c, x), out(in.size());
  std::vector<uint16_t> narrow_in(in.size()), narrow_out(in.size());
  narrow_values(in.data(), in.size(), narrow_in.data());
  Gate g = gate_of(c, layers);
  g.x_bf16 = narrow_in.data();
  g.y_bf16 = narrow_out.data();
  run(g, ThreadPool::shared());
  widen_values(narrow_out.data(), out.size(), out.data());
  const std::vector<float> y = plain(c, out);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], static_cast<double>(wanted[i]), 4e-3 * std::abs(y[i]) + 1e-9);
}

// A gate that is open leaves infinity what it is, though it is stored as two numbers.
TEST(Gate, KeepsInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for_each_level([&] {
    const Case c{
        1, 4, 1, 4, false, false, Activation::relu, Activation::hard_sigmoid, Activation::none};
    Layers layers(c);
    layers.squeeze_packed = Layers::pack(4, 1, {1, 1, 1, 1});
    layers.excite_packed = Layers::pack(1, 4, {1, 1, 1, 1});
    std::vector<float> x(4 * kChannelBlock, 1.0f), y(x.size());
    x[kChannelBlock + 2] = kInfinity;
    Gate g = gate_of(c, layers);
    g.x = x.data();
    g.y = y.data();
    run(g, ThreadPool::shared());
    for (size_t p = 0; p < 4; ++p)
      for (size_t i = 0; i < 4; ++i)
        EXPECT_EQ(y[p * kChannelBlock + i], p == 1 && i == 2 ? kInfinity : 1.0f);
  });
}

}  // namespace
}  // namespace hologram::backends::dense
