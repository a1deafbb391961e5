#include "compiler/exact_sums.h"

#include <gtest/gtest.h>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using testing::HasSubstr;

constexpr int64_t kChannels = 48, kHeight = 15, kWidth = 13;

struct Constants {
  kernels::Tensor first = varied({kChannels, kChannels, 3, 3}, 2), bias = varied({kChannels}, 3),
                  wide = varied({kChannels, 1, 5, 5}, 4),
                  points = varied({kChannels, kChannels, 1, 1}, 5),
                  squeeze = varied({kChannels, kChannels, 1, 1}, 6);
};

ValueId conv(Graph& g, ValueId x, const kernels::Tensor& weights, const char* name, int64_t pad,
             int64_t group = 1) {
  return g.op("Conv")
      .input(x)
      .input(g.add_constant(weights, name))
      .attribute("group", group)
      .attribute("pads", std::vector<int64_t>(4, pad));
}

// x + (a convolution and a bias).
Graph sum(const Constants& c) {
  Graph g;
  const ValueId x = add_input(g, "x", {1, kChannels, kHeight, kWidth});
  const ValueId y = g.op("Conv")
                        .input(x)
                        .input(g.add_constant(c.first, "first"))
                        .input(g.add_constant(c.bias, "bias"))
                        .attribute("pads", std::vector<int64_t>(4, 1));
  g.outputs = {g.op("Add").input(y).input(x)};
  g.output_names = {"y"};
  return g;
}

std::vector<float> run(Graph g, const CompileOptions& options, const kernels::Value& x) {
  const auto bytes = compile(std::move(g), options);
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  const auto session = open_bytes(*bytes);
  EXPECT_TRUE(session.has_value()) << session.error().to_string();
  const auto y = session->run(std::span(&x, 1));
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  const kernels::Tensor& t = (*y)[0].tensor;
  return {t.as<float>(), t.as<float>() + t.count()};
}

TEST(ExactSums, RoundOnceWithBiasAndResidual) {
  const Constants c;
  const kernels::Tensor x = varied({1, kChannels, kHeight, kWidth});
  const kernels::Value value(x);
  CompileReport report;
  const auto exact = run(sum(c), {.widened = {1}, .measured = true, .report = &report}, value);
  const auto plain = run(sum(c), {}, value);
  EXPECT_EQ(report.precision_note, "f32: 1 convolutions by sums of f64, 0 of f32");
  size_t others = 0;
  for (int64_t o = 0, at = 0; o < kChannels; ++o)
    for (int64_t y = 0; y < kHeight; ++y)
      for (int64_t z = 0; z < kWidth; ++z, ++at) {
        long double right = c.bias.as<float>()[o] + static_cast<long double>(x.as<float>()[at]);
        for (int64_t i = 0; i < kChannels; ++i)
          for (int64_t ky = 0; ky < 3; ++ky)
            for (int64_t kx = 0; kx < 3; ++kx) {
              const int64_t row = y + ky - 1, column = z + kx - 1;
              if (row < 0 || row >= kHeight || column < 0 || column >= kWidth) continue;
              right += static_cast<long double>(
                           c.first.as<float>()[((o * kChannels + i) * 3 + ky) * 3 + kx]) *
                       x.as<float>()[(i * kHeight + row) * kWidth + column];
            }
        // As near as a float can be, but where it lies between two.
        const float rounded = static_cast<float>(right), given = exact[static_cast<size_t>(at)];
        const float unit = std::nextafter(std::abs(rounded), 1e9f) - std::abs(rounded);
        ASSERT_LE(std::abs(given - right), 0.5001L * unit + 1e-14L) << at;
        if (plain[static_cast<size_t>(at)] != rounded) ++others;
      }
  EXPECT_GT(others, exact.size() / 4);  // what sums of f32 give
}

TEST(ExactSums, AreOfTheChosenAndLeaveGatesAlone) {
  const Constants c;
  const auto network = [&] {
    Graph g;
    const ValueId x = add_input(g, "x", {1, kChannels, kHeight, kWidth});
    const ValueId a = conv(g, x, c.wide, "wide", 2, kChannels);
    const ValueId mean = g.op("GlobalAveragePool").input(a);
    const ValueId low = g.op("Relu").input(conv(g, mean, c.squeeze, "squeeze", 0));
    const ValueId gate = g.op("Sigmoid").input(conv(g, low, c.points, "grow", 0));
    const ValueId b = g.op("Mul").input(a).input(gate);
    g.outputs = {conv(g, conv(g, b, c.first, "first", 1), c.points, "points", 0)};
    g.output_names = {"y"};
    return g;
  };
  const kernels::Value x(varied({1, kChannels, kHeight, kWidth}));
  CompileReport report;
  const auto all =
      run(network(), {.widened = {1, 1, 1, 1, 1}, .measured = true, .report = &report}, x);
  EXPECT_EQ(report.narrow_steps, 3u);
  // Which algorithm is best is the CPU's to say.
  const auto kernel = testing::AnyOf("Conv by Winograd 3 3", "Conv 3 3");
  EXPECT_THAT(report.kinds, testing::ElementsAre("grouped Conv 5 5", kernel, "Conv 1 1"));
  EXPECT_EQ(report.precision_note, "f32: 3 convolutions by sums of f64, 0 of f32");
  EXPECT_THAT(report.to_text(), HasSubstr("hologram.Gate"));
  const auto some = run(network(), {.widened = {0, 1}, .measured = true, .report = &report}, x);
  EXPECT_EQ(report.precision_note, "f32: 1 convolutions by sums of f64, 2 of f32");
  const auto none = run(network(), {.measured = true, .report = &report}, x);
  EXPECT_EQ(report.precision_note, "");
  EXPECT_EQ(none, run(network(), {}, x));
  EXPECT_NE(some, none);
  EXPECT_NE(all, some);
  EXPECT_LE(largest_difference(all, none), 1e-3);
}

TEST(LongSums, AreOfAllButDepthwiseOnesAlsoWhereStepsAreJoined) {
  const kernels::Tensor grow = varied({96, kChannels, 1, 1}, 2), wide = varied({96, 1, 3, 3}, 3),
                        shrink = varied({kChannels, 96, 1, 1}, 4);
  const auto network = [&] {
    Graph g;
    const ValueId x = add_input(g, "x", {1, kChannels, 80, 80});
    const ValueId y = conv(g, conv(g, x, grow, "grow", 0), wide, "wide", 1, 96);
    g.outputs = {conv(g, y, shrink, "shrink", 0)};
    g.output_names = {"y"};
    return g;
  };
  const kernels::Value x(varied({1, kChannels, 80, 80}));
  CompileReport report;
  const auto plain = run(network(), {.measured = true, .report = &report}, x);
  EXPECT_EQ(report.long_sums, 0u);
  EXPECT_THAT(report.to_text(), HasSubstr("Conv of points, depthwise Conv"));
  const auto chains = run(network(), {.measured = true, .long_sums = true, .report = &report}, x);
  EXPECT_EQ(report.long_sums, 2u);
  EXPECT_EQ(report.precision_note, "f32: sums of 2 convolutions in one chain each");
  EXPECT_NE(chains, plain);
  EXPECT_LE(largest_difference(chains, plain), 1e-4);
}

}  // namespace
}  // namespace hologram::compiler
