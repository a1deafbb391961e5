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

// Real and imaginary parts by convolutions of their own, as one transform where their windows
// agree.
TEST(SignalFilters, TransformsOfOneSignalAreJoined) {
  const auto half_of = [](const Tensor& filters, bool sines) {
    Tensor half = *Tensor::allocate(DType::f32, {kBins, 1, kTaps});
    std::copy_n(filters.as<float>() + (sines ? kBins * kTaps : 0), kBins * kTaps, half.as<float>());
    if (sines) std::fill_n(half.as<float>(), kTaps, 0.0f);  // not -0
    return half;
  };
  const auto build = [&](bool sines_first, double off, int64_t other_stride) {
    Graph g;
    const ValueId x = add_input(g, "x", {2, 1, kSamples});
    std::vector<ValueId> parts(2);
    for (const bool sines : {sines_first, !sines_first})
      parts[sines] =
          g.op("Conv")
              .input(x)
              .input(g.add_constant(half_of(fourier_filters(sines ? off : 0), sines)))
              .attribute("strides", std::vector<int64_t>{sines ? other_stride : kStride});
    g.outputs = parts;
    g.output_names = {"re", "im"};
    return g;
  };
  const Tensor x = varied({2, 1, kSamples});
  const std::vector inputs{Value(x)};
  const auto run = [&](Graph g, CompileOptions options) {
    const auto bytes = compile(std::move(g), options);
    EXPECT_TRUE(bytes.has_value());
    const auto session = open_bytes(*bytes);
    EXPECT_TRUE(session.has_value());
    auto y = session->run(inputs);
    EXPECT_TRUE(y.has_value()) << y.error().to_string();
    return *std::move(y);
  };
  for (const bool sines_first : {false, true})
    for (const auto& [off, stride] :
         {std::pair(0.0, kStride), {0.01, kStride}, {0.0, kStride + 1}}) {
      CompileReport report;
      const auto y = run(build(sines_first, off, stride), {.report = &report});
      const auto plain = run(build(sines_first, off, stride), {.optimise = false});
      const bool joins = off == 0.0 && stride == kStride;
      const size_t at = report.to_text().find(" x hologram.Fourier");
      ASSERT_NE(at, std::string::npos) << report.to_text();
      EXPECT_EQ(report.to_text()[at - 1], joins ? '1' : '2');
      EXPECT_EQ(report.to_text().find("hologram.Conv"), std::string::npos);
      for (size_t i = 0; i < 2; ++i) {
        ASSERT_EQ(y[i].tensor.dims, plain[i].tensor.dims);
        for (int64_t j = 0; j < y[i].tensor.count(); ++j)
          ASSERT_NEAR(y[i].tensor.as<float>()[j], plain[i].tensor.as<float>()[j], 1e-4)
              << sines_first << " " << i << " " << j;
      }
    }
}

}  // namespace
}  // namespace hologram::compiler
