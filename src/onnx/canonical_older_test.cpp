// Operators whose meaning changed between opsets 1 and 28, where no suite has a case.
#include <gmock/gmock.h>

#include <cmath>

#include "graph/testing/evaluate.h"
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

using graph::Attributes;
using graph::Graph;
using graph::Node;
using graph::testing::elements;
using graph::testing::scalar;
using graph::testing::tensor;
using graph::testing::vector;
using kernels::Tensor;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Result<std::vector<Tensor>> run_all(int opset, std::string op, std::vector<Tensor> inputs,
                                    Attributes attributes = {}, size_t outputs = 1) {
  Graph graph;
  Node node;
  node.op = std::move(op);
  node.opset = opset;
  for (auto& input : inputs)
    node.inputs.push_back(input.data ? graph.add_constant(std::move(input)) : graph::kNoValue);
  node.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph.add_value(""));
  graph.outputs = node.outputs;
  HOLOGRAM_CHECK(canonicalise(graph, node));
  graph.nodes.push_back(std::move(node));
  HOLOGRAM_CHECK(graph::resolve(graph));
  std::vector<Tensor> results;
  for (const graph::ValueId id : graph.outputs) results.push_back(*graph.value(id).constant);
  return results;
}

Tensor run(int opset, std::string op, std::vector<Tensor> inputs, Attributes attributes = {}) {
  auto results = run_all(opset, std::move(op), std::move(inputs), std::move(attributes));
  if (results) return (*results)[0];
  ADD_FAILURE() << results.error().to_string();
  return graph::testing::vector<float>({});
}

std::string refusal(int opset, std::string op, std::vector<Tensor> inputs, Attributes a = {},
                    size_t outputs = 1) {
  auto results = run_all(opset, std::move(op), std::move(inputs), std::move(a), outputs);
  return results ? "" : results.error().to_string();
}

TEST(Older, ClipHadNumbersForEveryType) {
  Attributes a;
  a.set("min", -1.0);
  EXPECT_THAT(elements<Half>(run(10, "Clip", {vector<Half>({Half(-3), Half(5)})}, a)),
              ElementsAre(Half(-1), Half(5)));
  a.set("max", 2.0);
  EXPECT_THAT(elements<double>(run(6, "Clip", {vector<double>({-3, 5})}, a)), ElementsAre(-1, 2));
}

TEST(Older, OneHotDidNotCountFromTheEnd) {
  const std::vector<Tensor> inputs = {vector<int64_t>({-1, 1}), scalar<int64_t>(2),
                                      vector<float>({0, 1})};
  EXPECT_THAT(elements<float>(run(9, "OneHot", inputs)), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(elements<float>(run(11, "OneHot", inputs)), ElementsAre(0, 1, 0, 1));
}

TEST(Older, GroupNormalizationScaledGroups) {
  // Two groups of two channels of one element: each group becomes -1, 1.
  const Tensor x = tensor<float>({1, 4, 1}, {1, 3, 10, 30});
  Attributes a;
  a.set("num_groups", int64_t{2});
  a.set("epsilon", 0.0);
  EXPECT_THAT(elements<float>(run(18, "GroupNormalization",
                                  {x, vector<float>({2, 3}), vector<float>({0, 1})}, a)),
              Pointwise(FloatNear(1e-5f), {-2.f, 2.f, -2.f, 4.f}));
  EXPECT_THAT(
      elements<float>(run(21, "GroupNormalization",
                          {x, vector<float>({1, 2, 3, 4}), vector<float>({0, 0, 0, 0})}, a)),
      Pointwise(FloatNear(1e-5f), {-1.f, 2.f, -3.f, 4.f}));
}

TEST(Older, BatchNormalizationOfElements) {
  Attributes a;
  a.set("spatial", int64_t{0});
  a.set("epsilon", 0.0);
  const Tensor x = tensor<float>({1, 1, 2}, {3, 10});
  auto row = [](float p, float q) { return tensor<float>({1, 2}, {p, q}); };
  const std::vector<Tensor> inputs = {x, row(1, 2), row(0, 1), row(1, 2), row(4, 16)};
  EXPECT_THAT(elements<float>(run(8, "BatchNormalization", inputs, a)), ElementsAre(1, 5));
  EXPECT_THAT(refusal(8, "BatchNormalization", inputs, a, 2), HasSubstr("spatial=0"));
}

TEST(Older, BatchNormalizationTrainedByMoreOutputs) {
  Attributes a;
  a.set("momentum", 0.5);
  a.set("epsilon", 0.0);
  const Tensor one = vector<float>({1}), zero = vector<float>({0});
  const std::vector<Tensor> inputs = {tensor<float>({2, 1}, {1, 3}), one, zero, zero, one};
  auto out = run_all(9, "BatchNormalization", inputs, a, 3);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(-1, 1));
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(1));  // 0 * 0.5 + 2 * 0.5
  EXPECT_THAT(refusal(9, "BatchNormalization", inputs, a, 5), HasSubstr("saved_mean"));
}

TEST(Older, DropoutHadAMaskOfNumbers) {
  Attributes a;
  a.set("ratio", 0.25);
  auto out = run_all(7, "Dropout", {vector<float>({1, 2})}, a, 2);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(1, 2));
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(1, 1));
  EXPECT_THAT(refusal(6, "Dropout", {vector<float>({1})}), HasSubstr("is_test=0"));
}

TEST(Older, AttributesThatBecameInputs) {
  Attributes k;
  k.set("k", int64_t{1});
  EXPECT_THAT(elements<float>(run(9, "TopK", {vector<float>({1, 3, 2})}, k)), ElementsAre(3));
  Attributes shape;
  shape.set("shape", std::vector<int64_t>{2, -1});
  shape.set("consumed_inputs", std::vector<int64_t>{0});
  EXPECT_EQ(run(4, "Reshape", {vector<float>({1, 2, 3, 4})}, shape).dims, kernels::Dims({2, 2}));
  Attributes axes;
  axes.set("axes", std::vector<int64_t>{0});
  axes.set("keepdims", int64_t{0});
  const Tensor matrix = tensor<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(elements<float>(run(12, "ReduceSum", {matrix}, axes)), ElementsAre(4, 6));
  EXPECT_THAT(elements<float>(run(17, "ReduceMax", {matrix}, axes)), ElementsAre(3, 4));
}

TEST(Older, DefaultsThatChanged) {
  const Tensor matrix = tensor<float>({1, 2}, {1, 2});
  EXPECT_EQ(run(3, "Concat", {matrix, matrix}).dims, kernels::Dims({1, 4}));
  // Softmax over all axes from 1 on, and over the last alone.
  const Tensor cube = tensor<float>({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(elements<float>(run(12, "Softmax", {cube}))[0], 0.25f);
  EXPECT_EQ(elements<float>(run(13, "Softmax", {cube}))[0], 0.5f);
  EXPECT_EQ(elements<float>(run(11, "LogSoftmax", {cube}))[0], std::log(0.25f));
  EXPECT_THAT(elements<float>(run(11, "Hardmax", {cube})), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(elements<float>(run(13, "Hardmax", {cube})), ElementsAre(1, 0, 1, 0));
  EXPECT_NEAR(elements<float>(run(5, "Selu", {vector<float>({1})}))[0], 1.0507f, 1e-7f);
}

TEST(Older, CastNamedItsType) {
  Attributes a;
  a.set("to", std::string("INT32"));
  EXPECT_THAT(elements<int32_t>(run(5, "Cast", {vector<float>({1.5f})}, a)), ElementsAre(1));
  a.set("to", std::string("FLOAT80"));
  EXPECT_THAT(refusal(5, "Cast", {vector<float>({1.5f})}, a), HasSubstr("'FLOAT80'"));
}

TEST(Older, LstmNamedItsOutputs) {
  Attributes a;
  a.set("hidden_size", int64_t{1});
  a.set("output_sequence", int64_t{1});
  const Tensor zeros = tensor<float>({1, 4, 1}, {0, 0, 0, 0});
  EXPECT_EQ(run(6, "LSTM", {tensor<float>({2, 1, 1}, {1, 2}), zeros, zeros}, a).dims,
            kernels::Dims({2, 1, 1, 1}));
}

TEST(Older, WhatWasTakenOutIsRefused) {
  EXPECT_THAT(refusal(10, "Upsample", {vector<float>({1}), vector<float>({2})}),
              HasSubstr("Upsample is not supported"));
}

}  // namespace
}  // namespace hologram::onnx
