// Weights stored in 4 or 8 bits: which products read them as they are, and that the results are
// those of the model as it stands.
#include "graph/passes/quantised_weights.h"

#include <algorithm>
#include <cmath>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;

Tensor bytes(DType type, const Dims& dims, uint32_t seed) {
  Tensor t = *Tensor::allocate(type, dims);
  for (size_t i = 0; i < t.bytes(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    t.as<uint8_t>()[i] = static_cast<uint8_t>(seed >> 24);
  }
  return t;
}
Tensor scales(const Dims& dims, uint32_t seed = 3) {
  Tensor t = varied(dims, seed);
  for (int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = 0.01f + 0.005f * t.as<float>()[i];
  return t;
}

struct Compiled {
  std::vector<float> values;
  CompileReport report;
  size_t bytes = 0;

  size_t steps(std::string_view kernel) const {
    for (const auto& k : report.kernels)
      if (k.name == kernel) return k.steps;
    return 0;
  }
};

Compiled compiled(Graph g, ValueId output, const Value& input, bool optimise) {
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  g.outputs = {output};
  g.output_names = {"y"};
  Compiled result;
  auto archive = compile(std::move(g), {.optimise = optimise, .report = &result.report});
  EXPECT_TRUE(archive.has_value()) << archive.error().to_string();
  if (!archive) return result;
  result.bytes = archive->size();
  auto y = open_bytes(*archive)->run(std::vector{input});
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  if (y)
    result.values.assign((*y)[0].tensor.as<float>(),
                         (*y)[0].tensor.as<float>() + (*y)[0].tensor.count());
  return result;
}

// `write` makes the result from the input; the product must be one step that reads codes.
template <typename Write>
void expect_codes(const Write& write, const Dims& dims, std::string_view gone) {
  std::vector<Compiled> runs;
  for (bool optimise : {false, true}) {
    Graph g;
    const ValueId x = add_input(g, "x", {symbol("rows"), dims.back()});
    const ValueId y = write(g, x);
    runs.push_back(compiled(std::move(g), y, Value(varied(dims)), optimise));
  }
  ASSERT_EQ(runs[0].values.size(), runs[1].values.size());
  float range = 0, worst = 0;
  for (size_t i = 0; i < runs[0].values.size(); ++i) {
    range = std::max(range, std::abs(runs[0].values[i]));
    worst = std::max(worst, std::abs(runs[0].values[i] - runs[1].values[i]));
  }
  EXPECT_GT(range, 0);
  EXPECT_LE(worst, 2e-6f * range);
  EXPECT_EQ(runs[1].steps("hologram.MatMul"), 1u);
  EXPECT_EQ(runs[1].steps(gone), 0u);
}

TEST(QuantisedWeights, AProductByDequantisedBytesReadsTheBytes) {
  for (DType type : {DType::i8, DType::u8})
    for (const bool columns : {false, true})
      for (const bool zero : {false, true})
        expect_codes(
            [&](Graph& g, ValueId x) {
              const Dims s = columns ? Dims{70} : Dims{};
              auto node = g.op("DequantizeLinear");
              node.input(g.add_constant(bytes(type, {40, 70}, 5))).input(g.add_constant(scales(s)));
              if (zero) node.input(g.add_constant(bytes(type, s, 9)));
              const ValueId product = g.op("MatMul").input(x).input(node.output());
              return g.op("Relu")
                  .input(g.op("Add").input(product).input(g.add_constant(varied({70}, 8))))
                  .output();
            },
            {3, 40}, "DequantizeLinear");
}

TEST(QuantisedWeights, SoDoesOneByTheirTransposeAndAGemm) {
  expect_codes(
      [](Graph& g, ValueId x) {
        auto node = g.op("DequantizeLinear");
        node.input(g.add_constant(bytes(DType::u8, {70, 40}, 5)))
            .input(g.add_constant(scales({70})))
            .input(g.add_constant(bytes(DType::u8, {70}, 2)))
            .attribute("axis", 0);
        const ValueId turned =
            g.op("Transpose").input(node.output()).attribute("perm", std::vector<int64_t>{1, 0});
        return g.op("MatMul").input(x).input(turned).output();
      },
      {1, 40}, "DequantizeLinear");
  expect_codes(
      [](Graph& g, ValueId x) {
        const ValueId w = g.op("DequantizeLinear")
                              .input(g.add_constant(bytes(DType::i8, {70, 40}, 5)))
                              .input(g.add_constant(scales({})));
        return g.op("Gemm")
            .input(x)
            .input(w)
            .input(g.add_constant(varied({70}, 4)))
            .attribute("transB", 1)
            .output();
      },
      {2, 40}, "DequantizeLinear");
}

TEST(QuantisedWeights, FourBitsInBlocks) {
  for (DType type : {DType::i4, DType::u4})
    expect_codes(
        [&](Graph& g, ValueId x) {
          const ValueId w = g.op("DequantizeLinear")
                                .input(g.add_constant(bytes(type, {64, 50}, 5)))
                                .input(g.add_constant(scales({4, 50})))
                                .input(g.add_constant(bytes(type, {4, 50}, 6)))
                                .attribute("axis", 0)
                                .attribute("block_size", 16);
          return g.op("MatMul").input(x).input(w).output();
        },
        {5, 64}, "DequantizeLinear");
}

TEST(QuantisedWeights, MatMulNBits) {
  for (int64_t bits : {4, 8})
    for (const bool zeros : {false, true})
      expect_codes(
          [&](Graph& g, ValueId x) {
            const int64_t blocks = 3, blob = 32 * bits / 8;
            auto node = g.op("MatMulNBits", "com.microsoft");
            node.input(x)
                .input(g.add_constant(bytes(DType::u8, {45, blocks, blob}, 5)))
                .input(g.add_constant(scales({45 * blocks})));
            if (zeros)
              node.input(g.add_constant(bytes(DType::u8, {45 * ((blocks * bits + 7) / 8)}, 7)));
            node.attribute("K", 90)
                .attribute("N", 45)
                .attribute("bits", bits)
                .attribute("block_size", 32);
            return node.output();
          },
          {2, 90}, "MatMulNBits");
}

TEST(QuantisedWeights, ManyRowsAreMultipliedByFloats) {
  Graph g;
  const ValueId x = add_input(g, "x", {64, 40});
  const ValueId w = g.op("DequantizeLinear")
                        .input(g.add_constant(bytes(DType::i8, {40, 70}, 5)))
                        .input(g.add_constant(scales({})));
  const ValueId y = g.op("MatMul").input(x).input(w);
  const Compiled run = compiled(std::move(g), y, Value(varied({64, 40})), true);
  EXPECT_EQ(run.steps("DequantizeLinear"), 0u);
  EXPECT_GT(run.bytes, 40u * 70 * 4);
}

TEST(QuantisedWeights, RowsAreGatheredBeforeTheyBecomeFloats) {
  for (bool optimise : {false, true}) {
    Graph g;
    const ValueId i = add_input(g, "i", {symbol("n")}, DType::i64);
    const ValueId w = g.op("DequantizeLinear")
                          .input(g.add_constant(bytes(DType::u8, {9, 7}, 5)))
                          .input(g.add_constant(tensor<float>({}, {0.5f})))
                          .input(g.add_constant(tensor<uint8_t>({}, {100})));
    const ValueId y = g.op("Gather").input(w).input(i);
    const Tensor codes = bytes(DType::u8, {9, 7}, 5);
    const Compiled run = compiled(std::move(g), y, Value(tensor<int64_t>({2}, {8, 3})), optimise);
    ASSERT_EQ(run.values.size(), 14u);
    for (size_t j = 0; j < 7; ++j) {
      EXPECT_EQ(run.values[j], 0.5f * (codes.as<uint8_t>()[8 * 7 + j] - 100.f));
      EXPECT_EQ(run.values[7 + j], 0.5f * (codes.as<uint8_t>()[3 * 7 + j] - 100.f));
    }
    EXPECT_EQ(run.steps("DequantizeLinear"), 1u);
  }
}

// Every step has its time, also those inside a body, once for all iterations.
TEST(SessionProfile, DescendsIntoSubplans) {
  Graph g;
  const ValueId x = add_input(g, "x", {4});
  auto body = std::make_unique<Graph>();
  body->add_input("i", graph::ValueType::tensor(DType::i64, Shape(std::vector<Dim>{})));
  const ValueId going =
      body->add_input("going", graph::ValueType::tensor(DType::boolean, Shape(std::vector<Dim>{})));
  const ValueId state = add_input(*body, "state", {4});
  const ValueId sum =
      body->op("CumSum").input(state).input(body->constant(int64_t{0})).name("inside");
  body->outputs = {body->op("Identity").input(going), sum};
  body->output_names = {"going", "sum"};
  graph::Node loop{.op = "Loop", .name = "outside", .opset = 16};
  loop.inputs = {g.constant(int64_t{3}), graph::kNoValue, x};
  loop.outputs = {g.add_value("y")};
  const ValueId y = loop.outputs[0];
  loop.subgraphs.push_back({"body", std::move(body)});
  g.nodes.push_back(std::move(loop));
  const runtime::Session session = session_of(std::move(g), {y});
  std::vector<runtime::StepTime> times;
  const auto result = session.profile(std::vector{Value(tensor<float>({4}, {1, 0, 0, 0}))}, times);
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_EQ((*result)[0].tensor.as<float>()[3], 10);
  ASSERT_GE(times.size(), 2u);
  EXPECT_EQ(times[0].name, "outside");
  EXPECT_EQ(times[0].depth, 0u);
  EXPECT_EQ(times[0].runs, 1u);
  const auto inside = std::ranges::find(times, "inside", &runtime::StepTime::name);
  ASSERT_NE(inside, times.end());
  EXPECT_EQ(inside->depth, 1u);
  EXPECT_EQ(inside->runs, 3u);
}

}  // namespace
}  // namespace hologram::compiler
