#include "compiler/narrow_images.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/precision.h"
#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;

// Twice: 1x1 to 64 channels, depthwise 3x3, 1x1 back, added to what came in; then 1x1. The first
// sum is read by another operator too when `shared`.
Graph blocks(bool shared) {
  Graph g;
  const auto constant = [&](const kernels::Dims& dims, uint32_t seed, double depth) {
    Tensor t = varied(dims, seed);
    for (float& value : t.span<float>()) value *= static_cast<float>(1 / std::sqrt(depth));
    return g.add_constant(t, "c" + std::to_string(seed));
  };
  const auto conv = [&](ValueId x, int64_t from, int64_t to, uint32_t seed, bool relu) -> ValueId {
    const ValueId y = g.op("Conv").input(x).input(constant({to, from, 1, 1}, seed, double(from)));
    return relu ? ValueId(g.op("Relu").input(y)) : y;
  };
  const auto depthwise = [&](ValueId x, uint32_t seed) -> ValueId {
    return g.op("Relu").input(g.op("Conv")
                                  .input(x)
                                  .input(constant({64, 1, 3, 3}, seed, 9))
                                  .attribute("group", 64)
                                  .attribute("pads", std::vector<int64_t>{1, 1, 1, 1}));
  };
  ValueId x = conv(add_input(g, "x", {1, 32, 14, 14}), 32, 32, 1, true), first = x;
  for (uint32_t i = 0; i < 2; ++i) {
    const ValueId y =
        conv(depthwise(conv(x, 32, 64, 10 * i + 2, true), 10 * i + 3), 64, 32, 10 * i + 4, false);
    x = g.op("Add").input(x).input(y);
    if (i == 0) first = x;
  }
  g.outputs = {conv(x, 32, 16, 30, false)};
  if (shared) g.outputs.push_back(g.op("Sin").input(first));
  for (size_t i = 0; i < g.outputs.size(); ++i) g.output_names.push_back("y" + std::to_string(i));
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

std::vector<float> result(Graph graph, Precision precision, std::string& note) {
  CompileReport report;
  auto bytes = compile(std::move(graph), {.precision = precision, .report = &report});
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  note = report.precision_note;
  auto session = open_bytes(*bytes);
  const kernels::Value x(varied({1, 32, 14, 14}, 5));
  auto y = session->run(std::span(&x, 1));
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  const Tensor& t = (*y)[0].tensor;
  return {t.as<float>(), t.as<float>() + t.count()};
}

// Within what bf16 may lose, and not the same.
void expect_near(const std::vector<float>& narrow, const std::vector<float>& exact) {
  ASSERT_EQ(narrow.size(), exact.size());
  double worst = 0, range = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, std::abs(double{exact[i]} - narrow[i]));
    range = std::max(range, std::abs(double{exact[i]}));
  }
  EXPECT_GT(worst, 0);
  EXPECT_LE(worst, 2e-2 * range);
}

TEST(NarrowImages, BetweenConvolutionsOnly) {
  for (const bool shared : {false, true}) {
    std::string note;
    const std::vector<float> exact = result(blocks(shared), Precision::f32, note);
    EXPECT_EQ(note, "");
    const std::vector<float> narrow = result(blocks(shared), Precision::bf16, note);
    // The first image, two a block and the first sum; the second goes into a plain result.
    const std::string images = shared ? "; 5 images" : "; 6 images";
    EXPECT_NE(note.find(images), std::string::npos) << note;
    expect_near(narrow, exact);
  }
}

// A pool, two branches that are joined, a gate by the mean of what it gates, and pixels repeated;
// with `added` the gated is added to what passes by the gate, and the repeated to an image.
Graph moved(bool added) {
  Graph g;
  const auto conv = [&](ValueId x, int64_t from, int64_t to, uint32_t seed) -> ValueId {
    Tensor w = varied({to, from, 1, 1}, seed);
    for (float& value : w.span<float>()) value *= static_cast<float>(1 / std::sqrt(double(from)));
    return g.op("Relu").input(
        g.op("Conv").input(x).input(g.add_constant(w, "c" + std::to_string(seed))));
  };
  const ValueId x = conv(add_input(g, "x", {1, 32, 14, 14}), 32, 32, 1);
  const ValueId pooled = g.op("MaxPool")
                             .input(x)
                             .attribute("kernel_shape", std::vector<int64_t>{3, 3})
                             .attribute("strides", std::vector<int64_t>{2, 2});
  const ValueId joined = g.op("Concat")
                             .input(conv(pooled, 32, 16, 2))
                             .input(conv(pooled, 32, 32, 3))
                             .attribute("axis", 1);
  const ValueId y = conv(joined, 48, 64, 4);
  const ValueId gate = g.op("Sigmoid").input(conv(g.op("GlobalAveragePool").input(y), 64, 64, 5));
  ValueId scaled = g.op("Mul").input(y).input(gate);
  if (added) scaled = g.op("Add").input(y).input(scaled);
  const ValueId gated = conv(scaled, 64, 16, 6);
  ValueId other = graph::kNoValue;
  if (added)
    other = g.op("MaxPool")
                .input(conv(x, 32, 16, 9))
                .attribute("kernel_shape", std::vector<int64_t>{3, 3});
  const std::vector<float> twice = {1, 1, 2, 2};
  ValueId grown = g.op("Resize")
                      .input(gated)
                      .input(graph::kNoValue)
                      .input(g.add_constant(*Tensor::from<float>({4}, twice)));
  if (added) grown = g.op("Add").input(grown).input(other);
  g.outputs = {conv(conv(grown, 16, 32, 7), 32, 16, 8)};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

TEST(NarrowImages, MoveAndScale) {
  std::string note;
  const std::vector<float> exact = result(moved(false), Precision::f32, note);
  const std::vector<float> narrow = result(moved(false), Precision::bf16, note);
  // x, what is pooled, both branches, what is joined, y, what is gated, its product and that grown;
  // the last convolution writes a plain result and reads f32.
  EXPECT_NE(note.find("; 9 images"), std::string::npos) << note;
  expect_near(narrow, exact);
}

TEST(NarrowImages, AreAddedWhereTheyAreMade) {
  std::string note;
  const std::vector<float> exact = result(moved(true), Precision::f32, note);
  const std::vector<float> narrow = result(moved(true), Precision::bf16, note);
  EXPECT_NE(note.find("; 11 images"), std::string::npos) << note;  // the other before and after
  expect_near(narrow, exact);
}

}  // namespace
}  // namespace hologram::compiler
