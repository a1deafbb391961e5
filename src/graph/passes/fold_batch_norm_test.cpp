#include "graph/passes/fold_batch_norm.h"

#include <gtest/gtest.h>

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
  ASSERT_EQ(g.nodes.size(), 1u);
  const double factor = double{first} * second * third;
  const auto constant = [&](size_t input) {
    return *g.value(g.nodes[0].inputs[input]).constant->as<float>();
  };
  EXPECT_EQ(constant(1), static_cast<float>(weight * factor));
  EXPECT_EQ(constant(2), static_cast<float>(double{shift} * second * third));
  EXPECT_EQ(g.nodes[0].outputs[0], g.outputs[0]);
}

}  // namespace
}  // namespace hologram::graph
