#include "compiler/test_session.h"
#include "graph/passes/fold_rotary_pairs.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Value;

// Rotary embedding of the first `depth` of 12 elements, written as models write it.
ValueId rotary(Graph& g, ValueId whole, ValueId cos, ValueId sin, int64_t depth) {
  const auto ints = [&](int64_t value) { return g.constant(std::vector<int64_t>{value}); };
  const auto slice = [&](ValueId x, int64_t from, int64_t to, int64_t step) -> ValueId {
    return g.op("Slice")
        .input(x)
        .input(ints(from))
        .input(ints(to))
        .input(ints(3))
        .input(ints(step));
  };
  const ValueId x = depth == 12 ? whole : slice(whole, 0, depth, 1);
  const ValueId odd = g.op("Neg").input(slice(x, 1, 1 << 30, 2)), even = slice(x, 0, 1 << 30, 2);
  const ValueId joined = g.op("Concat")
                             .input(g.op("Unsqueeze").input(odd).input(ints(-1)))
                             .input(g.op("Unsqueeze").input(even).input(ints(-1)))
                             .attribute("axis", -1);
  const ValueId turned =
      g.op("Reshape").input(joined).input(g.constant(std::vector<int64_t>{0, 0, 0, depth}));
  const ValueId sum = g.op("Add")
                          .input(g.op("Mul").input(x).input(cos))
                          .input(g.op("Mul").input(turned).input(sin));
  if (depth == 12) return sum;
  return g.op("Concat").input(sum).input(slice(whole, depth, 12, 1)).attribute("axis", -1);
}

TEST(RotaryPairs, IsOneStepWithTheSameBits) {
  for (const int64_t depth : {12, 8})
    for (const bool open : {false, true}) {
      std::vector<kernels::Tensor> results;
      for (const bool optimise : {false, true}) {
        Graph g;
        const Dim rows = open ? symbol("rows") : Dim(5);
        const ValueId x = add_input(g, "x", {2, 3, rows, 12});
        const ValueId cos = add_input(g, "cos", {1, 1, rows, depth});
        const ValueId sin = add_input(g, "sin", {1, 1, rows, depth});
        const ValueId y = rotary(g, x, cos, sin, depth);
        const runtime::Session session = session_of(std::move(g), {y}, optimise);
        const std::vector inputs{Value(varied({2, 3, 5, 12}, 1)),
                                 Value(varied({1, 1, 5, depth}, 2)),
                                 Value(varied({1, 1, 5, depth}, 3))};
        std::vector<runtime::StepTime> steps;
        auto result = session.profile(inputs, steps);
        ASSERT_TRUE(result.has_value()) << result.error().to_string();
        results.push_back(*(*result)[0].tensor.clone());
        if (optimise) {
          EXPECT_EQ(steps.size(), 1u) << depth << open;
        }
      }
      EXPECT_TRUE(same_bits(results[0], results[1])) << depth << open;
    }
}

}  // namespace
}  // namespace hologram::compiler
