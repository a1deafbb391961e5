#include <gmock/gmock.h>

#include "graph/testing/evaluate.h"
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

using graph::Graph;
using graph::Node;
using graph::testing::vector;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One node of an older opset on one input, rewritten and evaluated.
Result<std::vector<kernels::Tensor>> run(int opset, std::string op, kernels::Tensor in,
                                         graph::Attributes attributes, size_t outputs = 1) {
  Graph graph;
  Node node;
  node.op = std::move(op);
  node.opset = opset;
  node.inputs = {graph.add_constant(std::move(in))};
  node.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph.add_value(""));
  graph.outputs = node.outputs;
  HOLOGRAM_CHECK(canonicalise(graph, node));
  graph.nodes.push_back(std::move(node));
  HOLOGRAM_CHECK(graph::resolve(graph));
  std::vector<kernels::Tensor> results;
  for (graph::ValueId id : graph.outputs) results.push_back(*graph.value(id).constant);
  return results;
}

TEST(OlderMovement, SliceHadAttributes) {
  graph::Attributes a;
  a.set("starts", std::vector<int64_t>{-2});
  a.set("ends", std::vector<int64_t>{100});
  auto out = run(9, "Slice", vector<float>({1, 2, 3}), a);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(graph::testing::elements<float>((*out)[0]), ElementsAre(2, 3));
  auto refused = run(9, "Slice", vector<float>({1}), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().to_string(), HasSubstr("attributes starts and ends"));
}

TEST(OlderMovement, SplitHadSizes) {
  graph::Attributes a;
  a.set("split", std::vector<int64_t>{1, 2});
  auto out = run(11, "Split", vector<float>({1, 2, 3}), a, 2);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(graph::testing::elements<float>((*out)[1]), ElementsAre(2, 3));
}

TEST(OlderMovement, PadHadAValueForEveryFloat) {
  graph::Attributes a;
  a.set("pads", std::vector<int64_t>{1, 0});
  a.set("value", 1.5);
  auto out = run(10, "Pad", vector<Half>({Half(2)}), a);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(graph::testing::elements<Half>((*out)[0]), ElementsAre(Half(1.5f), Half(2)));
  a.set("mode", std::string("edge"));
  out = run(7, "Pad", vector<double>({2}), a);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(graph::testing::elements<double>((*out)[0]), ElementsAre(2, 2));
}

TEST(OlderMovement, SqueezeHadAxes) {
  graph::Attributes a;
  a.set("axes", std::vector<int64_t>{0});
  auto out = run(11, "Unsqueeze", vector<float>({2}), a);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_EQ((*out)[0].dims, kernels::Dims({1, 1}));
  out = run(11, "Squeeze", (*out)[0], a);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_EQ((*out)[0].dims, kernels::Dims({1}));
}

}  // namespace
}  // namespace hologram::onnx
