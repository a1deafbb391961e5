// Models that quantise while they run, compiled: what the reference's order changes is the last
// bit.
#include <cmath>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Value;

TEST(ReferenceOrder, AnglesOfAnySize) {
  Graph g;
  const std::vector<float> angles = {0, -0.5f, 3, -9999, 10001, 1e6f, -3e30f, 1e-40f};
  const ValueId x = add_input(g, "x", {8});
  const ValueId sine = g.op("Sin").input(x), cosine = g.op("Cos").input(x);
  const ValueId codes = g.op("DynamicQuantizeLinear").input(sine);
  const runtime::Session session = session_of(std::move(g), {sine, cosine, codes});
  const auto results = session.run(std::vector{Value(tensor<float>({8}, angles))});
  ASSERT_TRUE(results.has_value()) << results.error().to_string();
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_NEAR((*results)[0].tensor.as<float>()[i], std::sin(double{angles[i]}), 2e-7);
    EXPECT_NEAR((*results)[1].tensor.as<float>()[i], std::cos(double{angles[i]}), 2e-7);
  }
}

// Every operator that changes its order, against the same graph without optimisations.
TEST(ReferenceOrder, ChangesTheLastBitsOnly) {
  for (const int64_t batch : {1, 2})
    for (const int64_t width : {20, 150}) {
      std::vector<kernels::Tensor> results;
      for (const bool optimise : {false, true}) {
        Graph g;
        const auto weights = [&](const kernels::Dims& dims, uint32_t seed) {
          return g.add_constant(varied(dims, seed), "w" + std::to_string(seed));
        };
        const ValueId x = add_input(g, "x", {symbol("n"), 24, symbol("width")});
        const ValueId conv =
            g.op("Conv").input(x).input(weights({32, 24, 7}, 1)).input(weights({32}, 2));
        const ValueId tanh = g.op("Tanh").input(conv);
        const ValueId norm = g.op("InstanceNormalization")
                                 .input(tanh)
                                 .input(weights({32}, 3))
                                 .input(weights({32}, 4));
        const ValueId rows =
            g.op("Transpose").input(norm).attribute("perm", std::vector<int64_t>{0, 2, 1});
        const ValueId first = g.op("LayerNormalization").input(rows).input(weights({32}, 5));
        const ValueId swish = g.op("Mul").input(first).input(g.op("Sigmoid").input(first));
        const ValueId turned =
            g.op("Transpose").input(swish).attribute("perm", std::vector<int64_t>{0, 2, 1});
        const ValueId scores = g.op("MatMul").input(g.op("Cos").input(first)).input(turned);
        const ValueId soft = g.op("Softmax").input(scores).attribute("axis", -1);
        const ValueId mixed = g.op("MatMul").input(soft).input(swish);
        const ValueId y = g.op("LayerNormalization").input(mixed).input(weights({32}, 6));
        const ValueId codes = g.op("DynamicQuantizeLinear").input(y);
        const runtime::Session session = session_of(std::move(g), {y, codes}, optimise);
        const auto result = session.run(std::vector{Value(varied({batch, 24, width}, 7))});
        ASSERT_TRUE(result.has_value()) << result.error().to_string();
        results.push_back(*(*result)[0].tensor.clone());
      }
      ASSERT_TRUE(results[0].dims == results[1].dims);
      for (int64_t i = 0; i < results[0].count(); ++i)
        ASSERT_NEAR(results[0].as<float>()[i], results[1].as<float>()[i], 2e-5) << batch << width;
    }
}

}  // namespace
}  // namespace hologram::compiler
