#include <gmock/gmock.h>

#include "graph/testing/evaluate.h"
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

using graph::testing::tensor;
using graph::testing::vector;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One node of an older opset on constants, rewritten and evaluated.
Result<kernels::Tensor> run(int opset, std::string op, std::vector<kernels::Tensor> inputs,
                            graph::Attributes attributes) {
  graph::Graph graph;
  graph::Node node;
  node.op = std::move(op);
  node.opset = opset;
  for (auto& input : inputs) node.inputs.push_back(graph.add_constant(std::move(input)));
  node.attributes = std::move(attributes);
  node.outputs = {graph.add_value("")};
  graph.outputs = node.outputs;
  HOLOGRAM_CHECK(canonicalise(graph, node));
  graph.nodes.push_back(std::move(node));
  HOLOGRAM_CHECK(graph::resolve(graph));
  return *graph.value(graph.outputs[0]).constant;
}

std::vector<float> floats(const Result<kernels::Tensor>& result) {
  if (result) return graph::testing::elements<float>(*result);
  ADD_FAILURE() << result.error().to_string();
  return {};
}

TEST(OlderNetworks, UpsampleHadScalesAsAnAttribute) {
  graph::Attributes a;
  a.set("scales", std::vector<float>{2});
  EXPECT_THAT(floats(run(7, "Upsample", {vector<float>({1, 2})}, a)), ElementsAre(1, 1, 2, 2));
  a.set("mode", std::string("linear"));
  EXPECT_THAT(floats(run(8, "Upsample", {vector<float>({1, 2})}, a)), ElementsAre(1, 1.5, 2, 2));
  EXPECT_THAT(run(7, "Upsample", {vector<float>({1, 2})}, {}).error().to_string(),
              HasSubstr("scales"));
}

TEST(OlderNetworks, ResizeWasAsymmetric) {
  const auto x = vector<float>({1, 2, 3, 4});
  EXPECT_THAT(floats(run(10, "Resize", {x, vector<float>({2})}, {})),
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(floats(run(10, "Resize", {x, vector<float>({0.6f})}, {})), ElementsAre(1, 3));
  EXPECT_THAT(floats(run(9, "Upsample", {x, vector<float>({1.5f})}, {})),
              ElementsAre(1, 1, 2, 3, 3, 4));
}

TEST(OlderNetworks, RoiAlignDidNotShift) {
  std::vector<float> image(16);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 4);
  const auto x = tensor<float>({1, 1, 4, 4}, image), box = tensor<float>({1, 4}, {0, 0, 2, 2});
  const auto first = vector<int64_t>({0});
  EXPECT_THAT(floats(run(10, "RoiAlign", {x, box, first}, {})), ElementsAre(1));
  EXPECT_THAT(floats(run(16, "RoiAlign", {x, box, first}, {})), ElementsAre(0.5));
}

TEST(OlderNetworks, GridSampleNamedTwoAxes) {
  const auto x = tensor<float>({1, 1, 1, 2}, {1, 2}), grid = tensor<float>({1, 1, 1, 2}, {0, 0});
  graph::Attributes a;
  EXPECT_THAT(floats(run(16, "GridSample", {x, grid}, a)), ElementsAre(1.5));
  a.set("mode", std::string("bicubic"));
  EXPECT_TRUE(run(16, "GridSample", {x, grid}, a).has_value());
  EXPECT_THAT(run(20, "GridSample", {x, grid}, a).error().to_string(), HasSubstr("bicubic"));
}

TEST(OlderNetworks, DftHadAnAxis) {
  const auto x = tensor<float>({2, 2, 1}, {1, 2, 3, 5});
  graph::Attributes a;
  EXPECT_THAT(floats(run(17, "DFT", {x}, a)), ElementsAre(3, 0, -1, 0, 8, 0, -2, 0));
  a.set("axis", int64_t{0});
  EXPECT_THAT(floats(run(19, "DFT", {x}, a)), ElementsAre(4, 0, 7, 0, -2, 0, -3, 0));
}

}  // namespace
}  // namespace hologram::onnx
