#include "onnx/gradient.h"

#include <gmock/gmock.h>

#include <functional>

#include "graph/testing/evaluate.h"

namespace hologram::onnx {
namespace {

using graph::Attributes;
using graph::Graph;
using graph::Node;
using graph::Tensor;
using graph::ValueId;
using graph::testing::elements;
using graph::testing::tensor;
using graph::testing::vector;
using ::testing::HasSubstr;

ValueId add_node(Graph& g, std::string op, std::vector<ValueId> inputs, Attributes a = {}) {
  Node node;
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(a);
  node.outputs = {g.add_value("")};
  const ValueId result = node.outputs[0];
  g.nodes.push_back(std::move(node));
  return result;
}

using Body = std::function<ValueId(Graph&, std::vector<ValueId>)>;

// The sum of the body's result, in doubles.
double value_of(const Body& body, const std::vector<Tensor>& inputs) {
  Graph g;
  std::vector<ValueId> ids;
  for (const Tensor& t : inputs) ids.push_back(g.add_constant(t));
  g.outputs = {body(g, ids)};
  const auto status = graph::resolve(g);
  EXPECT_TRUE(status) << status.error().to_string();
  double sum = 0;
  for (const double x : elements<double>(*g.value(g.outputs[0]).constant)) sum += x;
  return sum;
}

Result<std::vector<Tensor>> gradients(const Body& body, const std::vector<Tensor>& inputs) {
  Graph g;
  GradientRequest request;
  for (const Tensor& t : inputs) request.sources.push_back(g.add_constant(t));
  request.arguments = request.sources;
  request.differentiated = inputs.size();
  request.y = body(g, request.sources);
  HOLOGRAM_TRY(g.outputs, add_gradient(g, request));
  HOLOGRAM_CHECK(graph::resolve(g));
  std::vector<Tensor> results;
  for (const ValueId id : g.outputs) results.push_back(*g.value(id).constant);
  return results;
}

// The gradient beside differences of values a little to both sides.
void expect_right(const char* what, const Body& body, std::vector<Tensor> inputs) {
  const auto found = gradients(body, inputs);
  ASSERT_TRUE(found.has_value()) << what << ": " << found.error().to_string();
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ((*found)[i].dims, inputs[i].dims) << what << ", input " << i;
    for (int64_t k = 0; k < inputs[i].count(); ++k) {
      std::vector<Tensor> moved = inputs;
      double sides[2];
      for (int side : {0, 1}) {
        moved[i] = *inputs[i].clone();
        moved[i].as<double>()[k] += side == 0 ? -1e-5 : 1e-5;
        sides[side] = value_of(body, moved);
      }
      EXPECT_NEAR((*found)[i].as<double>()[k], (sides[1] - sides[0]) / 2e-5, 1e-6)
          << what << ", input " << i << ", element " << k;
    }
  }
}

const Tensor kMatrix = tensor<double>({2, 3}, {0.5, 1.25, 2, 0.75, 1.5, 3});

TEST(Gradient, OfFunctionsOfOneNumber) {
  for (const char* op : {"Identity", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Abs",
                         "Tanh", "Sigmoid", "Softplus", "Relu"})
    expect_right(op, [&](Graph& g, auto in) { return add_node(g, op, in); }, {kMatrix});
}

TEST(Gradient, OfTwoNumbersThatBroadcast) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Sum", "Mean"}) {
    const Body body = [&](Graph& g, auto in) { return add_node(g, op, in); };
    expect_right(op, body, {kMatrix, vector<double>({2, 3, 0.5})});
    expect_right(op, body, {tensor<double>({2, 1}, {2, 3}), kMatrix});
  }
}

TEST(Gradient, OfProducts) {
  const Body matmul = [](Graph& g, auto in) { return add_node(g, "MatMul", in); };
  expect_right("MatMul", matmul, {kMatrix, tensor<double>({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect_right(
      "batches", matmul,
      {tensor<double>({2, 1, 3}, {1, 2, 3, 4, 5, 6}), tensor<double>({3, 2}, {1, -2, 3, 4, 5, 6})});
  for (int64_t ta : {0, 1})
    for (int64_t tb : {0, 1}) {
      const Body gemm = [&](Graph& g, auto in) {
        Attributes a;
        a.set("transA", ta), a.set("transB", tb), a.set("alpha", 0.5), a.set("beta", 2.0);
        return add_node(g, "Gemm", in, a);
      };
      const Tensor left = ta ? tensor<double>({3, 2}, {1, 2, 3, 4, 5, 6}) : kMatrix;
      const Tensor right = tb ? kMatrix : tensor<double>({3, 2}, {1, 2, 3, 4, 5, 6});
      expect_right("Gemm", gemm, {left, right, vector<double>({1, 2})});
    }
}

TEST(Gradient, OfWhatIsUsedTwiceAndReshaped) {
  expect_right(
      "x * exp(x), flattened",
      [](Graph& g, auto in) {
        return add_node(g, "Flatten", {add_node(g, "Mul", {in[0], add_node(g, "Exp", {in[0]})})});
      },
      {kMatrix});
}

// d/dx of d/dx x^3 = 6x, through a second request over what the first wrote.
TEST(Gradient, OfAGradient) {
  Graph g;
  const ValueId x = g.add_constant(vector<double>({2, 3}));
  const ValueId cube = add_node(g, "Mul", {x, add_node(g, "Mul", {x, x})});
  auto once = add_gradient(g, {cube, {x}, {x}, 1, "", 1});
  ASSERT_TRUE(once.has_value());
  auto twice = add_gradient(g, {(*once)[0], {x}, {x}, 1, "", 1});
  ASSERT_TRUE(twice.has_value()) << twice.error().to_string();
  g.outputs = *twice;
  ASSERT_TRUE(graph::resolve(g));
  EXPECT_THAT(elements<double>(*g.value(g.outputs[0]).constant), ::testing::ElementsAre(12, 18));
}

TEST(Gradient, AtOtherArgumentsTheGraphRunsAgain) {
  Graph g;
  const ValueId x = g.add_constant(vector<double>({2})), at = g.add_constant(vector<double>({5}));
  const ValueId other = g.add_constant(vector<double>({1}));
  const ValueId square = add_node(g, "Mul", {x, x});
  auto found = add_gradient(g, {square, {x, other}, {at, other}, 2, "", 1});
  ASSERT_TRUE(found.has_value());
  g.outputs = *found;
  ASSERT_TRUE(graph::resolve(g));
  EXPECT_EQ(elements<double>(*g.value(g.outputs[0]).constant)[0], 10);
  EXPECT_EQ(elements<double>(*g.value(g.outputs[1]).constant)[0], 0);  // y does not depend on it
}

TEST(Gradient, OfOtherOperatorsIsRefusedByName) {
  const auto refused = gradients(
      [](Graph& g, auto in) {
        return add_node(g, "Gather", {in[0], g.constant(int64_t{0})});
      },
      {kMatrix});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("(Gather"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("is not known; supported: Abs, Add"));
}

}  // namespace
}  // namespace hologram::onnx
