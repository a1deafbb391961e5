#include "compiler/signal_filters.h"

#include <cmath>
#include <numbers>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;

constexpr int64_t kTaps = 128, kBins = kTaps / 2 + 1, kSamples = 1000, kStride = 48;

// The windowed cosines and sines of a Fourier transform, or of one that is off by a bit.
Tensor fourier_filters(double off = 0) {
  Tensor w = *Tensor::allocate(DType::f32, {2 * kBins, 1, kTaps});
  for (int64_t k = 0; k < kBins; ++k)
    for (int64_t n = 0; n < kTaps; ++n) {
      const double angle = 2 * std::numbers::pi * double(n) / double(kTaps);
      const double window = 0.5 - 0.5 * std::cos(angle + off);
      w.as<float>()[k * kTaps + n] = float(window * std::cos(angle * double(k)));
      w.as<float>()[(kBins + k) * kTaps + n] = float(window * -std::sin(angle * double(k)));
    }
  return w;
}

Graph transform(const Tensor& filters, bool with_bias = true) {
  Graph g;
  const ValueId x = add_input(g, "x", {2, 1, kSamples});
  const ValueId bias = with_bias ? g.add_constant(varied({2 * kBins}, 3)) : graph::kNoValue;
  const ValueId conv = g.op("Conv")
                           .input(x)
                           .input(g.add_constant(filters))
                           .input(bias)
                           .attribute("strides", std::vector<int64_t>{kStride});
  g.outputs = {conv};
  g.output_names = {"y"};
  return g;
}

TEST(SignalFilters, FourierTransformsTakeHalfTheProducts) {
  const auto exact = compile(transform(fourier_filters())),
             off = compile(transform(fourier_filters(0.01)));
  ASSERT_TRUE(exact && off);
  EXPECT_LT(exact->size(), off->size() * 2 / 3);  // half the taps are stored
}

TEST(SignalFilters, PlainFourierTransformsTakeTheirWindowAlone) {
  const Tensor other = fourier_filters();
  other.as<float>()[5 * kTaps + 17] += 0.01f;
  for (const Precision precision : {Precision::f32, Precision::bf16})
    for (const double off : {0.0, 0.01}) {  // any window will do
      const auto exact = compile(transform(fourier_filters(off), false), {.precision = precision}),
                 bent = compile(transform(other, false), {.precision = precision});
      ASSERT_TRUE(exact && bent);
      EXPECT_LT(exact->size(), bent->size() / 3);
    }
}

TEST(SignalFilters, GiveTheSameResults) {
  for (const auto& [off, with_bias] :
       {std::pair(0.0, true), {0.01, true}, {0.0, false}, {0.01, false}}) {
    const Tensor filters = fourier_filters(off);
    const Tensor x = varied({2, 1, kSamples}), bias = varied({2 * kBins}, 3);
    const std::vector inputs{Value(x)};
    const auto bytes = compile(transform(filters, with_bias));
    ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
    const auto session = open_bytes(*bytes);
    ASSERT_TRUE(session.has_value()) << session.error().to_string();
    const auto y = session->run(inputs);
    ASSERT_TRUE(y.has_value()) << y.error().to_string();
    constexpr int64_t kFrames = (kSamples - kTaps) / kStride + 1;
    ASSERT_EQ((*y)[0].tensor.dims, kernels::Dims({2, 2 * kBins, kFrames}));
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t f = 0; f < 2 * kBins; ++f)
        for (int64_t t = 0; t < kFrames; ++t) {
          double sum = with_bias ? bias.as<float>()[f] : 0, size = 1;
          for (int64_t n = 0; n < kTaps; ++n) {
            const double term = double(x.as<float>()[b * kSamples + t * kStride + n]) *
                                filters.as<float>()[f * kTaps + n];
            sum += term;
            size += std::abs(term);
          }
          ASSERT_NEAR((*y)[0].tensor.as<float>()[(b * 2 * kBins + f) * kFrames + t], sum,
                      1e-6 * size);
        }
  }
}

}  // namespace
}  // namespace hologram::compiler
