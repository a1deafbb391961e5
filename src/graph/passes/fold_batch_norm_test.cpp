#include "graph/passes/fold_batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/testing/evaluate.h"
#include "graph/verify.h"

namespace hologram::graph {
namespace {

// Weights that are rounded once for each of several factors move results further than those of a
// convolution and its factors apart.
TEST(FoldBatchNorm, RoundsWeightsOnceForAllThatFollows) {
  Graph g;
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({1, 1, 2, 2})));
  const float weight = 0.7f, first = 1.1f, second = 0.7f, third = 1.3f, shift = 0.9f;
  const auto number = [&](float value) {
    return g.add_constant(testing::tensor<float>({1, 1, 1, 1}, {value}));
  };
  ValueId y = g.op("Conv").input(x).input(number(weight));
  y = g.op("Mul").input(y).input(number(first));
  y = g.op("Add").input(y).input(number(shift));
  y = g.op("Mul").input(y).input(number(second));
  y = g.op("Mul").input(y).input(number(third));
  g.outputs = {y};
  g.output_names = {"y"};
  ASSERT_TRUE(g.status()) << g.status().error().to_string();
  ASSERT_TRUE(fold_batch_norm(g));
  ASSERT_TRUE(verify(g));
  ASSERT_EQ(g.nodes.size(), 2u);
  const double factor = double{first} * second * third, bias = double{shift} * second * third;
  const auto constant = [&](size_t node, size_t input) {
    return *g.value(g.nodes[node].inputs[input]).constant->as<float>();
  };
  EXPECT_EQ(constant(0, 1), static_cast<float>(weight * factor));
  EXPECT_EQ(constant(0, 2), static_cast<float>(bias));
  // What rounding took from the bias is added.
  EXPECT_EQ(g.nodes[1].op, "Add");
  EXPECT_EQ(g.nodes[1].inputs[0], g.nodes[0].outputs[0]);
  EXPECT_EQ(constant(1, 1), static_cast<float>(bias - static_cast<double>(constant(0, 2))));
  EXPECT_EQ(g.nodes[1].outputs[0], g.outputs[0]);
  // Once is enough.
  ASSERT_TRUE(fold_batch_norm(g));
  EXPECT_EQ(g.nodes.size(), 2u);
}

// Neighbouring pixels are much alike, so it is the sum of the taps that must be right.
TEST(FoldBatchNorm, TapsTakeWhatRoundingLeavesOfTheOthers) {
  constexpr int64_t kChannels = 40, kTaps = 25;
  Graph g;
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({1, kChannels, 9, 9})));
  std::vector<float> weights, factors;
  for (int64_t i = 0; i < kChannels * kTaps; ++i)
    weights.push_back(std::sin(static_cast<float>(i * i)));
  for (int64_t i = 0; i < kChannels; ++i) factors.push_back(1.1f + static_cast<float>(i) / 7);
  const ValueId y =
      g.op("Conv")
          .input(x)
          .input(g.add_constant(testing::tensor<float>({kChannels, 1, 5, 5}, weights)))
          .attribute("group", kChannels);
  g.outputs = {g.op("Mul").input(y).input(
      g.add_constant(testing::tensor<float>({kChannels, 1, 1}, factors)))};
  g.output_names = {"y"};
  ASSERT_TRUE(g.status()) << g.status().error().to_string();
  ASSERT_TRUE(fold_batch_norm(g));
  ASSERT_EQ(g.nodes.size(), 1u);  // there is no bias to take anything from
  const float* folded = g.value(g.nodes[0].inputs[1]).constant->as<float>();
  for (int64_t c = 0; c < kChannels; ++c) {
    double sum = 0;
    for (int64_t t = c * kTaps; t < (c + 1) * kTaps; ++t) {
      const double right =
          double{weights[static_cast<size_t>(t)]} * factors[static_cast<size_t>(c)];
      EXPECT_NEAR(folded[t], right, 6.2e-7);
      sum += folded[t] - right;
    }
    // Half a unit in the last place of one weight below 8; of 25 without regard to each other up to
    // 6e-6.
    EXPECT_LE(std::abs(sum), 2.5e-7);
  }
}

}  // namespace
}  // namespace hologram::graph
