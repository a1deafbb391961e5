// A batch gives the bits that its samples give alone, however threads share it.
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Tensor;

// 3x3, depthwise, 1x1 with a residual, and 3x3 to a plain image.
Graph network(int64_t batch) {
  Graph g;
  const std::vector<int64_t> pads = {1, 1, 1, 1};
  const auto weights = [&](const kernels::Dims& dims, uint32_t seed) {
    Tensor t = varied(dims, seed);
    const double depth = static_cast<double>(dims.product(1, dims.rank()));
    for (float& value : t.span<float>()) value *= static_cast<float>(1 / std::sqrt(depth));
    return g.add_constant(t, "w" + std::to_string(seed));
  };
  const ValueId x = add_input(g, "x", {batch, 40, 9, 11});
  const ValueId a = g.op("Relu").input(
      g.op("Conv").input(x).input(weights({72, 40, 3, 3}, 1)).attribute("pads", pads));
  const ValueId b = g.op("Relu").input(g.op("Conv")
                                           .input(a)
                                           .input(weights({72, 1, 3, 3}, 2))
                                           .attribute("group", 72)
                                           .attribute("pads", pads));
  const ValueId c = g.op("Conv").input(b).input(weights({72, 72, 1, 1}, 3));
  const ValueId d = g.op("Relu").input(g.op("Add").input(a).input(c));
  g.outputs = {g.op("Conv").input(d).input(weights({24, 72, 3, 3}, 4)).attribute("pads", pads)};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
  return g;
}

std::vector<float> result(const Tensor& x, const CompileOptions& options) {
  auto bytes = compile(network(x.dims[0]), options);
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  auto session = open_bytes(*bytes);
  const kernels::Value value(x);
  auto y = session->run(std::span(&value, 1));
  EXPECT_TRUE(y.has_value()) << y.error().to_string();
  const Tensor& t = (*y)[0].tensor;
  return {t.as<float>(), t.as<float>() + t.count()};
}

TEST(Samples, OfABatchAreAsAlone) {
  for (const Precision precision : {Precision::f32, Precision::fast, Precision::bf16})
    for (const bool measured : {false, true})
      for (const int64_t batch : {2, 3, 4}) {
        const CompileOptions options{.precision = precision, .measured = measured};
        const Tensor all = varied({batch, 40, 9, 11}, 5);
        const std::vector<float> together = result(all, options);
        for (int64_t n = 0; n < batch; ++n) {
          const int64_t count = all.count() / batch;
          const float* from = all.as<float>() + n * count;
          const auto one =
              Tensor::from<float>({1, 40, 9, 11}, std::vector<float>(from, from + count));
          const std::vector<float> alone = result(*one, options);
          const auto first = together.begin() + n * static_cast<int64_t>(alone.size());
          EXPECT_EQ(std::vector<float>(first, first + static_cast<int64_t>(alone.size())), alone)
              << "sample " << n << " of " << batch;
        }
      }
}

}  // namespace
}  // namespace hologram::compiler
