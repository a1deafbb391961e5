// From a graph to results: what a user does, on small graphs.
#include "compiler/compile.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "compiler/count_allocations.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using testing::HasSubstr;

template <typename T>
Tensor tensor(const kernels::Dims& dims, std::vector<T> elements) {
  return *Tensor::from<T>(dims, std::span<const T>(elements));
}

// softmax(relu(x * w + b)), with a symbolic batch when `batch` is empty.
Graph small_network(std::optional<int64_t> batch) {
  Graph g;
  g.name = "small";
  ValueId x = g.add_input(
      "x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{
                                             batch ? Dim(*batch) : Dim(std::string("batch")), 3})));
  ValueId w = g.add_constant(tensor<float>({3, 2}, {1, -2, 3, 4, -5, 6}), "w");
  ValueId b = g.add_constant(tensor<float>({2}, {0.5f, -0.5f}), "b");
  ValueId product = g.op("MatMul").input(x).input(w).name("product");
  ValueId sum = g.op("Add").input(product).input(b).name("sum");
  ValueId relu = g.op("Relu").input(sum);
  g.outputs = {g.op("Softmax").input(relu).attribute("axis", -1)};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

std::shared_ptr<AlignedBytes> aligned(const std::vector<std::byte>& bytes) {
  auto copy = std::make_shared<AlignedBytes>(*AlignedBytes::allocate(bytes.size()));
  std::memcpy(copy->data(), bytes.data(), bytes.size());
  return copy;
}

Result<Session> open(const std::vector<std::byte>& bytes) {
  auto owner = aligned(bytes);
  auto archive = archive::Archive::open(owner->bytes(), owner);
  if (!archive) return std::unexpected(archive.error());
  return Session::open(*std::move(archive));
}

std::vector<float> expected(const std::vector<float>& x) {
  const float w[] = {1, -2, 3, 4, -5, 6}, b[] = {0.5f, -0.5f};
  std::vector<float> y;
  for (size_t row = 0; row < x.size() / 3; ++row) {
    double e[2], sum = 0;
    for (int j = 0; j < 2; ++j) {
      double v = b[j];
      for (int k = 0; k < 3; ++k) v += x[row * 3 + k] * w[k * 2 + j];
      sum += e[j] = std::exp(std::max(v, 0.0));
    }
    for (double v : e) y.push_back(static_cast<float>(v / sum));
  }
  return y;
}

void check(const Session& session, int64_t rows) {
  std::vector<float> x;
  for (int64_t i = 0; i < rows * 3; ++i) x.push_back(0.1f * static_cast<float>(i % 7) - 0.3f);
  auto outputs = session.run(std::vector{Value(tensor<float>({rows, 3}, x))});
  ASSERT_TRUE(outputs.has_value()) << outputs.error().to_string();
  const std::vector<float> want = expected(x);
  ASSERT_EQ((*outputs)[0].tensor.count(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR((*outputs)[0].tensor.as<float>()[i], want[i], 1e-6);
}

TEST(Compile, RunsAGraphOfKnownShape) {
  auto bytes = compile(small_network(4));
  ASSERT_TRUE(bytes.has_value()) << bytes.error().to_string();
  auto session = open(*bytes);
  ASSERT_TRUE(session.has_value()) << session.error().to_string();
  EXPECT_EQ(session->inputs()[0].name, "x");
  EXPECT_EQ(session->outputs()[0].name, "y");
  check(*session, 4);
  check(*session, 4);
}

TEST(Compile, RunsAGraphOfSymbolicShape) {
  auto session = open(*compile(small_network(std::nullopt)));
  ASSERT_TRUE(session.has_value());
  for (int64_t rows : {1, 5, 300, 2}) check(*session, rows);
}

TEST(Compile, RunsFromManyThreads) {
  auto session = open(*compile(small_network(std::nullopt)));
  ASSERT_TRUE(session.has_value());
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) check(*session, 1 + t);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Compile, AllocatesNothingAfterTheFirstRunOfAShape) {
  for (auto batch : {std::optional<int64_t>(8), std::optional<int64_t>()}) {
    auto session = open(*compile(small_network(batch)));
    ASSERT_TRUE(session.has_value());
    const std::vector inputs{Value(tensor<float>({8, 3}, std::vector<float>(24, 0.25f)))};
    const std::vector outputs{*Tensor::allocate(DType::f32, {8, 2})};
    ASSERT_TRUE(session->run_into(inputs, outputs).has_value());
    const int64_t before = allocations();
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(session->run_into(inputs, outputs).has_value());
    EXPECT_EQ(allocations() - before, 0) << (batch ? "static" : "symbolic");
  }
}

TEST(Compile, RefusesInputsThatDoNotFit) {
  auto session = open(*compile(small_network(4)));
  ASSERT_TRUE(session.has_value());
  auto wrong_shape = session->run(std::vector{Value(tensor<float>({1, 3}, {1, 2, 3}))});
  ASSERT_FALSE(wrong_shape.has_value());
  EXPECT_THAT(wrong_shape.error().to_string(),
              HasSubstr("input 'x': shape [1, 3] where [4, 3] is expected"));
  auto wrong_type =
      session->run(std::vector{Value(tensor<int64_t>({4, 3}, std::vector<int64_t>(12)))});
  ASSERT_FALSE(wrong_type.has_value());
  EXPECT_EQ(wrong_type.error().code(), ErrorCode::type_mismatch);
  EXPECT_FALSE(session->run({}).has_value());
}

}  // namespace
}  // namespace hologram::compiler
