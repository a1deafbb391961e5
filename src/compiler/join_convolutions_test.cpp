#include "compiler/join_convolutions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/precision.h"
#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;

struct Model {
  int64_t size = 65, stride = 1;  // 64 channels of 65 x 65 values are more than a MiB
  int64_t kernel = 1;             // of the first convolution
  bool shared = false;            // whether another operator reads the image between
  bool biased = true;
  bool scaled = false;  // arithmetic with numbers behind the first activation
  int64_t batch = 1;

  Graph graph() const {
    Graph g;
    const auto constant = [&](const kernels::Dims& dims, uint32_t seed, double depth) {
      Tensor t = varied(dims, seed);
      for (float& value : t.span<float>()) value *= static_cast<float>(1 / std::sqrt(depth));
      return g.add_constant(t, "c" + std::to_string(seed));
    };
    const auto conv = [&](ValueId x, ValueId w, uint32_t seed, int64_t channels, int64_t groups,
                          int64_t step, int64_t margin) -> ValueId {
      graph::NodeBuilder node = g.op("Conv");
      node.input(x).input(w);
      if (biased) node.input(constant({channels}, seed, 1));
      return node.attribute("group", groups)
          .attribute("strides", std::vector<int64_t>{step, step})
          .attribute("pads", std::vector<int64_t>{margin, margin, margin, margin});
    };
    const ValueId x = add_input(g, "x", {batch, 20, size, size});
    ValueId first = g.op("Relu").input(
        conv(x, constant({64, 20, kernel, kernel}, 1, 20), 2, 64, 1, 1, kernel / 2));
    const auto number = [&](float value) {
      return g.add_constant(*Tensor::from<float>({1}, std::vector<float>{value}), "number");
    };
    if (scaled)
      first =
          g.op("Add").input(g.op("Mul").input(first).input(number(0.75f))).input(number(-0.25f));
    const ValueId second =
        g.op("HardSwish").input(conv(first, constant({64, 1, 3, 3}, 3, 9), 4, 64, 64, stride, 1));
    g.outputs = {conv(second, constant({24, 64, 1, 1}, 5, 64), 6, 24, 1, 1, 0)};
    if (shared) g.outputs.push_back(g.op("Sin").input(first));
    for (size_t i = 0; i < g.outputs.size(); ++i) g.output_names.push_back("y" + std::to_string(i));
    EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
    return g;
  }

  // How many pairs were joined, and the first output.
  std::pair<size_t, std::vector<float>> run(const CompileOptions& options) const {
    return fused_and_run(graph(), options, "Conv of points",
                         kernels::Value(varied({batch, 20, size, size}, 7)));
  }
};

TEST(JoinConvolutions, HasTheBitsOfTwoSteps) {
  for (const Precision precision : {Precision::f32, Precision::fast, Precision::bf16})
    for (const int64_t stride : {1, 2})
      for (const bool biased : {false, true}) {
        Model model{
            .stride = stride, .biased = biased, .scaled = stride == 2, .batch = biased ? 1 : 2};
        const auto [joined, y] = model.run({.precision = precision});
        const bool large = precision != Precision::bf16;  // half the bytes
        EXPECT_EQ(joined, large ? 1u : 0u);
        const double limit = precision == Precision::bf16 ? 4e-2 : 1e-4;
        EXPECT_LE(largest_difference(y, model.run({.optimise = false}).second), limit);
        model.shared = true;
        const auto [apart, same] = model.run({.precision = precision});
        EXPECT_EQ(apart, 0u);
        if (large) {
          EXPECT_EQ(y, same);
        }
      }
}

TEST(JoinConvolutions, KeepsBf16) {
  Model model{.size = 95, .stride = 2};
  const auto [joined, y] = model.run({.precision = Precision::bf16});
  EXPECT_EQ(joined, 1u);
  const double worst = largest_difference(y, model.run({}).second);
  EXPECT_GT(worst, 0);
  EXPECT_LE(worst, 4e-2);
}

TEST(JoinConvolutions, LeavesSmallImagesOtherKernelsAndStoredHalves) {
  EXPECT_EQ((Model{.size = 60}.run({}).first), 0u);
  EXPECT_EQ((Model{.kernel = 3}.run({}).first), 0u);
  EXPECT_EQ((Model{}.run({.precision = Precision::f16}).first), 0u);
  EXPECT_EQ((Model{}.run({.optimise = false}).first), 0u);
}

}  // namespace
}  // namespace hologram::compiler
