// What 8-bit models become: the kernels, and that their results are those of the model as it
// stands. A quotient near a tie may round to the neighbouring code.
#include "graph/passes/fuse_integer.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using Ints = std::vector<int64_t>;

Tensor bytes(DType type, const Dims& dims, uint32_t seed) {
  Tensor t = *Tensor::allocate(type, dims);
  for (int64_t i = 0; i < t.count(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    t.as<uint8_t>()[i] = static_cast<uint8_t>(seed >> 24);
  }
  return t;
}

struct Network {
  Graph g;
  uint32_t seed = 10;

  ValueId number(float value) { return g.add_constant(tensor<float>({}, {value})); }
  ValueId zero(DType type, int value) {
    Tensor t = *Tensor::allocate(type, {});
    *t.as<uint8_t>() = static_cast<uint8_t>(value);
    return g.add_constant(t);
  }
  ValueId weights(DType type, const Dims& dims) {
    return g.add_constant(bytes(type, dims, ++seed));
  }
  ValueId scales(int64_t count, float size) {
    Tensor t = varied({count}, ++seed);
    for (int64_t i = 0; i < count; ++i) t.as<float>()[i] = size * (1.5f + t.as<float>()[i]);
    return g.add_constant(t);
  }
  ValueId dequantised(ValueId x, float scale, DType type, int z) {
    return g.op("DequantizeLinear").input(x).input(number(scale)).input(zero(type, z));
  }
  ValueId quantised(ValueId x, float scale, DType type, int z) {
    return g.op("QuantizeLinear").input(x).input(number(scale)).input(zero(type, z));
  }
};

struct Outcome {
  Tensor y;
  CompileReport report;
  size_t steps(std::string_view kernel) const {
    for (const auto& k : report.kernels)
      if (k.name == kernel) return k.steps;
    return 0;
  }
};

using Write = std::function<ValueId(Network&, ValueId)>;

Outcome outcome(const Write& write, DType type, const Dims& dims, bool optimise) {
  Network n;
  const ValueId x = add_input(n.g, "x", std::vector<Dim>(dims.begin(), dims.end()), type);
  n.g.outputs = {write(n, x)};
  n.g.output_names = {"y"};
  EXPECT_TRUE(n.g.status().has_value()) << n.g.status().error().to_string();
  Outcome result;
  auto archive = compile(std::move(n.g), {.optimise = optimise, .report = &result.report});
  EXPECT_TRUE(archive.has_value()) << archive.error().to_string();
  if (!archive) return result;
  auto y = open_bytes(*archive)->run(std::vector{Value(bytes(type, dims, 77))});
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  if (y) result.y = *(*y)[0].tensor.clone();
  return result;
}

Outcome expect_same(const Write& write, DType type, const Dims& dims) {
  const Outcome plain = outcome(write, type, dims, false);
  Outcome fused = outcome(write, type, dims, true);
  EXPECT_EQ(plain.y.dtype, fused.y.dtype);
  EXPECT_TRUE(plain.y.dims == fused.y.dims);
  if (plain.y.count() == 0 || plain.y.count() != fused.y.count()) return fused;
  int64_t flipped = 0;
  double range = 0, worst = 0;
  for (int64_t i = 0; i < plain.y.count(); ++i) {
    const auto at = [&](const Tensor& t) -> double {
      switch (t.dtype) {
        case DType::i8:
          return t.as<int8_t>()[i];
        case DType::u8:
          return t.as<uint8_t>()[i];
        case DType::i32:
          return t.as<int32_t>()[i];
        default:
          return t.as<float>()[i];
      }
    };
    const double d = std::abs(at(plain.y) - at(fused.y));
    flipped += d != 0;
    worst = std::max(worst, d);
    range = std::max(range, std::abs(at(plain.y)));
  }
  EXPECT_GT(range, 0);
  if (plain.y.dtype == DType::f32) {
    EXPECT_LE(worst, 2e-6 * range);
  } else if (plain.y.dtype == DType::i32) {
    EXPECT_EQ(worst, 0);
  } else {
    EXPECT_LE(worst, 1);
    EXPECT_LE(flipped, plain.y.count() / 100 + 1);
  }
  return fused;
}

TEST(Integers, QLinearConvOfEveryKind) {
  for (DType x_type : {DType::u8, DType::i8})
    for (DType w_type : {DType::u8, DType::i8})
      for (int64_t group : {1, 2, 8}) {
        const auto write = [&](Network& n, ValueId x) {
          return n.g.op("QLinearConv")
              .input(x)
              .input(n.number(0.02f))
              .input(n.zero(x_type, x_type == DType::i8 ? -5 : 120))
              .input(n.weights(w_type, {8, 8 / group, 3, 3}))
              .input(n.scales(8, 0.01f))
              .input(n.g.add_constant(bytes(w_type, {8}, 4)))
              .input(n.number(1.5f))
              .input(n.zero(DType::u8, 128))
              .input(n.g.add_constant(tensor<int32_t>({8}, {1, -2000, 300, 4, 5, 6, 7, 90000})))
              .attribute("group", group)
              .attribute("pads", Ints{1, 1, 1, 1})
              .attribute("strides", Ints{1, 2})
              .output();
        };
        // The result is of the input's type where signs agree; here always u8.
        const Outcome run = expect_same(write, x_type, {2, 8, 9, 7});
        EXPECT_EQ(run.steps("hologram.ConvInteger"), 1u);
        EXPECT_EQ(run.steps("QLinearConv"), 0u);
        EXPECT_NE(run.report.to_text().find("ConvInteger"), std::string::npos);
      }
}

TEST(Integers, QLinearMatMul) {
  const auto write = [](Network& n, ValueId x) {
    return n.g.op("QLinearMatMul")
        .input(x)
        .input(n.number(0.02f))
        .input(n.zero(DType::u8, 100))
        .input(n.weights(DType::i8, {40, 33}))
        .input(n.number(0.03f))
        .input(n.zero(DType::i8, 3))
        .input(n.number(2.0f))
        .input(n.zero(DType::u8, 128))
        .output();
  };
  const Outcome run = expect_same(write, DType::u8, {2, 5, 40});
  EXPECT_EQ(run.steps("hologram.MatMulInteger"), 1u);
}

TEST(Integers, ConvIntegerIsExact) {
  const auto write = [](Network& n, ValueId x) {
    return n.g.op("ConvInteger")
        .input(x)
        .input(n.weights(DType::i8, {6, 5, 3}))
        .input(n.zero(DType::u8, 7))
        .attribute("pads", Ints{1, 0})
        .output();
  };
  const Outcome run = expect_same(write, DType::u8, {1, 5, 30});
  EXPECT_EQ(run.steps("hologram.ConvInteger"), 1u);
}

// DequantizeLinear, Conv, Relu, QuantizeLinear, MaxPool, Flatten, Gemm: nothing in f32 is left.
TEST(Integers, AQuantisedNetworkRunsInIntegersThroughout) {
  const auto write = [](Network& n, ValueId x) {
    const ValueId w =
        n.g.op("DequantizeLinear")
            .input(n.weights(DType::i8, {12, 4, 3, 3}))
            .input(n.scales(12, 0.01f))
            .input(n.g.add_constant(*Tensor::from<int8_t>({12}, std::vector<int8_t>(12, 0))))
            .attribute("axis", 0);
    ValueId v = n.g.op("Conv")
                    .input(n.dequantised(x, 0.02f, DType::u8, 114))
                    .input(w)
                    .input(n.g.add_constant(varied({12}, 3)))
                    .attribute("pads", Ints{1, 1, 1, 1});
    v = n.quantised(n.g.op("Relu").input(v), 0.2f, DType::u8, 0);
    v = n.g.op("MaxPool")
            .input(n.dequantised(v, 0.2f, DType::u8, 0))
            .attribute("kernel_shape", Ints{2, 2})
            .attribute("strides", Ints{2, 2});
    v = n.quantised(v, 0.2f, DType::u8, 0);
    v = n.g.op("Flatten").input(n.dequantised(v, 0.2f, DType::u8, 0)).attribute("axis", 1);
    v = n.quantised(v, 0.2f, DType::u8, 0);
    const ValueId m = n.g.op("DequantizeLinear")
                          .input(n.weights(DType::i8, {10, 12 * 16}))
                          .input(n.scales(10, 0.01f))
                          .attribute("axis", 0);
    v = n.g.op("Gemm")
            .input(n.dequantised(v, 0.2f, DType::u8, 0))
            .input(m)
            .input(n.g.add_constant(varied({10}, 5)))
            .attribute("transB", 1);
    return n.quantised(v, 3.0f, DType::i8, 4);
  };
  const Outcome run = expect_same(write, DType::u8, {2, 4, 8, 8});
  EXPECT_EQ(run.steps("hologram.ConvInteger"), 1u);
  EXPECT_EQ(run.steps("hologram.MatMulInteger"), 1u);
  EXPECT_EQ(run.steps("DequantizeLinear"), 0u);
  EXPECT_EQ(run.steps("QuantizeLinear"), 0u);
  EXPECT_EQ(run.steps("Conv") + run.steps("hologram.Conv"), 0u);
}

// A block with a residual, two sizes of channels, a depthwise convolution and a pool that wants the
// plain order: between convolutions and element-wise operators nothing is turned.
TEST(Integers, ImagesStayWithChannelsLast) {
  const auto write = [](Network& n, ValueId x) {
    const auto convolved = [&](ValueId bytes, float scale, const Dims& dims, int64_t group) {
      const ValueId w = n.g.op("DequantizeLinear")
                            .input(n.weights(DType::i8, dims))
                            .input(n.scales(dims[0], 0.002f))
                            .attribute("axis", 0);
      const int64_t pad = dims[2] / 2;
      return n.g.op("Conv")
          .input(n.dequantised(bytes, scale, DType::u8, 9))
          .input(w)
          .attribute("group", group)
          .attribute("pads", Ints{pad, pad, pad, pad})
          .output();
    };
    const ValueId inner = n.quantised(n.g.op("Relu").input(convolved(x, 0.02f, {64, 5, 3, 3}, 1)),
                                      0.02f, DType::u8, 9);
    const ValueId left = convolved(inner, 0.02f, {20, 64, 3, 3}, 1);
    const ValueId right = convolved(x, 0.02f, {20, 5, 1, 1}, 1);
    const ValueId sum = n.g.op("Relu").input(n.g.op("Add").input(left).input(right));
    const ValueId codes = n.quantised(sum, 0.05f, DType::u8, 9);
    const ValueId deep = convolved(codes, 0.05f, {20, 1, 3, 3}, 20);
    const ValueId pooled = n.g.op("MaxPool")
                               .input(n.g.op("Add").input(deep).input(sum))
                               .attribute("kernel_shape", Ints{3, 3})
                               .attribute("pads", Ints{1, 1, 1, 1});
    return n.g.op("Add").input(pooled).input(sum).output();
  };
  const Outcome run = expect_same(write, DType::u8, {2, 5, 7, 9});
  EXPECT_EQ(run.steps("hologram.ConvInteger"), 4u);
  // What the pool reads, what it makes, and the result.
  EXPECT_EQ(run.steps("Transpose"), 3u);
}

TEST(Integers, WithoutAQuantisedResultItIsF32) {
  const auto write = [](Network& n, ValueId x) {
    const ValueId m = n.g.op("DequantizeLinear")
                          .input(n.weights(DType::u8, {40, 33}))
                          .input(n.number(0.01f))
                          .input(n.zero(DType::u8, 130));
    const ValueId product = n.g.op("MatMul").input(n.dequantised(x, 0.02f, DType::i8, -4)).input(m);
    return n.g.op("Sigmoid")
        .input(n.g.op("Add").input(product).input(n.g.add_constant(varied({33}, 5))))
        .output();
  };
  const Outcome run = expect_same(write, DType::i8, {3, 40});
  EXPECT_EQ(run.steps("hologram.MatMulInteger"), 1u);
  EXPECT_EQ(run.y.dtype, DType::f32);
}

TEST(Integers, WhatStaysInFloatsSaysWhy) {
  // A scale for each row of the weights cannot be taken out of the sums.
  const auto write = [](Network& n, ValueId x) {
    const ValueId m = n.g.op("DequantizeLinear")
                          .input(n.weights(DType::u8, {40, 33}))
                          .input(n.scales(40, 0.01f))
                          .attribute("axis", 0);
    return n.g.op("MatMul").input(n.dequantised(x, 0.02f, DType::u8, 100)).input(m).output();
  };
  const Outcome run = expect_same(write, DType::u8, {3, 40});
  EXPECT_EQ(run.steps("hologram.MatMulInteger"), 0u);
  EXPECT_NE(run.report.to_text().find("not in integers: its weights do not have a scale a column"),
            std::string::npos);
}

}  // namespace
}  // namespace hologram::compiler
