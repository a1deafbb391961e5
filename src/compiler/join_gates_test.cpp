#include "compiler/join_gates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;

struct Model {
  const char* excite = "HardSigmoid";
  bool shared = false;  // whether another operator reads the mean
  bool biased = true;
  bool added = false;  // the image is added to what the gate makes of it
  bool other = false;  // the gate is of another image
  int64_t batch = 1;

  Graph graph() const {
    Graph g;
    const auto conv = [&](ValueId x, int64_t in, int64_t out, int64_t kernel,
                          uint32_t seed) -> ValueId {
      Tensor w = varied({out, in, kernel, kernel}, seed);
      for (float& value : w.span<float>())
        value *= static_cast<float>(1 / std::sqrt(in * kernel * kernel));
      graph::NodeBuilder node = g.op("Conv");
      node.input(x).input(g.add_constant(w, "w" + std::to_string(seed)));
      if (biased) node.input(g.add_constant(varied({out}, seed + 50), "b" + std::to_string(seed)));
      return node.attribute("pads", std::vector<int64_t>(4, kernel / 2));
    };
    const ValueId x = add_input(g, "x", {batch, 3, 12, 17});
    const ValueId image = g.op("HardSwish").input(conv(x, 3, 40, 3, 1));
    const ValueId mean = g.op("GlobalAveragePool").input(other ? conv(image, 40, 40, 3, 5) : image);
    const ValueId squeezed = g.op("Relu").input(conv(mean, 40, 10, 1, 2));
    const ValueId gate = g.op(excite).input(conv(squeezed, 10, 40, 1, 3));
    ValueId gated = g.op("Mul").input(image).input(gate);
    if (added) gated = g.op("Add").input(image).input(gated);
    g.outputs = {conv(gated, 40, 24, 1, 4)};
    if (shared) g.outputs.push_back(g.op("Sin").input(mean));
    for (size_t i = 0; i < g.outputs.size(); ++i) g.output_names.push_back("y" + std::to_string(i));
    EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
    return g;
  }

  // How many gates were joined, and the first output.
  std::pair<size_t, std::vector<float>> run(const CompileOptions& options) const {
    return fused_and_run(graph(), options, "GlobalAveragePool, Conv, Conv, Scale",
                         kernels::Value(varied({batch, 3, 12, 17}, 7)));
  }
};

TEST(JoinGates, GivesWhatTheStepsGive) {
  for (const Precision precision : {Precision::f32, Precision::fast, Precision::bf16})
    for (const char* excite : {"HardSigmoid", "Sigmoid", "Relu"})
      for (const bool biased : {false, true})
        for (const bool added : {false, true}) {
          const Model model{
              .excite = excite, .biased = biased, .added = added, .batch = biased ? 1 : 2};
          const auto [joined, y] = model.run({.precision = precision});
          if (precision == Precision::f32) {
            EXPECT_EQ(joined, 1u);
          }
          const double limit = precision == Precision::bf16   ? 4e-2
                               : precision == Precision::fast ? 1e-4
                                                              : 3e-6;
          EXPECT_LE(largest_difference(y, model.run({.optimise = false}).second), limit);
        }
}

TEST(JoinGates, LeavesOtherPatterns) {
  EXPECT_EQ((Model{.excite = "Tanh"}.run({}).first), 0u);
  EXPECT_EQ((Model{.shared = true}.run({}).first), 0u);
  EXPECT_EQ((Model{.other = true}.run({}).first), 0u);
  EXPECT_EQ((Model{}.run({.precision = Precision::f16}).first), 0u);
  EXPECT_EQ((Model{}.run({.optimise = false}).first), 0u);
}

}  // namespace
}  // namespace hologram::compiler
