#include <gmock/gmock.h>

#include "graph/testing/evaluate.h"
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

using graph::testing::tensor;
using graph::testing::vector;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A node of opset 6 on constants, rewritten and evaluated.
Result<std::vector<float>> run(std::string op, std::vector<kernels::Tensor> inputs,
                               graph::Attributes attributes) {
  graph::Graph graph;
  graph::Node node;
  node.op = std::move(op);
  node.opset = 6;
  for (auto& input : inputs) node.inputs.push_back(graph.add_constant(std::move(input)));
  node.attributes = std::move(attributes);
  node.outputs = {graph.add_value("")};
  graph.outputs = node.outputs;
  HOLOGRAM_CHECK(canonicalise(graph, node));
  graph.nodes.push_back(std::move(node));
  HOLOGRAM_CHECK(graph::resolve(graph));
  return graph::testing::elements<float>(*graph.value(graph.outputs[0]).constant);
}

TEST(OlderArithmetic, TheSecondOperandBeginsAtAnAxis) {
  graph::Attributes a;
  a.set("broadcast", int64_t{1});
  a.set("axis", int64_t{0});
  auto sum = run("Add", {tensor<float>({2, 2}, {1, 2, 3, 4}), vector<float>({10, 20})}, a);
  ASSERT_TRUE(sum.has_value()) << sum.error().to_string();
  EXPECT_THAT(*sum, ElementsAre(11, 12, 23, 24));
}

TEST(OlderArithmetic, WithoutAnAxisItMeetsTheLast) {
  graph::Attributes a;
  a.set("broadcast", int64_t{1});
  auto sum = run("Add", {tensor<float>({2, 2}, {1, 2, 3, 4}), vector<float>({10, 20})}, a);
  ASSERT_TRUE(sum.has_value()) << sum.error().to_string();
  EXPECT_THAT(*sum, ElementsAre(11, 22, 13, 24));
}

TEST(OlderArithmetic, ASlopeForEachChannel) {
  auto y = run("PRelu", {tensor<float>({1, 2, 2}, {-1, 2, -3, 4}), vector<float>({10, 100})}, {});
  ASSERT_TRUE(y.has_value()) << y.error().to_string();
  EXPECT_THAT(*y, ElementsAre(-10, 2, -300, 4));
}

TEST(OlderArithmetic, BatchNormalizationTrainingIsRefused) {
  auto y = run("BatchNormalization", {vector<float>({1})}, {});
  ASSERT_FALSE(y.has_value());
  EXPECT_THAT(y.error().to_string(), HasSubstr("is_test=0"));
}

}  // namespace
}  // namespace hologram::onnx
