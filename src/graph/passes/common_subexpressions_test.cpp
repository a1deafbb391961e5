#include "graph/passes/common_subexpressions.h"

#include <gmock/gmock.h>

#include "graph/passes/dead_code.h"
#include "graph/testing/evaluate.h"
#include "graph/verify.h"

namespace hologram::graph {
namespace {

// How many nodes are left of a graph whose only output is `value`.
size_t left(Graph& g, ValueId value) {
  g.outputs = {value};
  g.output_names = {"y"};
  EXPECT_TRUE(g.status()) << g.status().error().to_string();
  merge_common_subexpressions(g);
  remove_dead_code(g);
  EXPECT_TRUE(verify(g));
  return g.nodes.size();
}

ValueId input(Graph& g) { return g.add_input("x", ValueType::tensor(DType::f32, Shape({2, 3}))); }

TEST(CommonSubexpressions, MergesChains) {
  Graph g;
  const ValueId x = input(g);
  ValueId ends[2];
  for (ValueId& end : ends) {
    const ValueId scaled = g.op("Mul").input(x).input(g.constant(0.5f));  // two constants, equal
    end = g.op("Softmax").input(scaled).attribute("axis", -1);
  }
  EXPECT_EQ(left(g, g.op("Add").input(ends[0]).input(ends[1])), 3u);
}

TEST(CommonSubexpressions, KeepsWhatDiffers) {
  for (int what = 0; what < 5; ++what) {
    Graph g;
    const ValueId x = input(g);
    ValueId a, b;
    if (what == 0) {
      a = g.op("Softmax").input(x).attribute("axis", 0);
      b = g.op("Softmax").input(x).attribute("axis", 1);
    } else if (what == 1) {
      a = g.op("Mul").input(x).input(g.constant(0.f));
      b = g.op("Mul").input(x).input(g.constant(-0.f));
    } else if (what == 2) {
      a = g.op("Sub").input(x).input(g.constant(1.f));
      b = g.op("Sub").input(g.constant(1.f)).input(x);
    } else if (what == 3) {  // random: every node draws its own numbers
      a = g.op("RandomNormalLike").input(x);
      b = g.op("RandomNormalLike").input(x);
    } else {
      a = g.op("LeakyRelu").input(x).attribute("alpha", 0.1);
      b = g.op("LeakyRelu").input(x);
    }
    EXPECT_EQ(left(g, g.op("Add").input(a).input(b)), 3u) << what;
  }
}

TEST(CommonSubexpressions, MergesAllOutputsOfANode) {
  Graph g;
  const ValueId x = input(g);
  ValueId parts[2][2];
  for (auto& pair : parts) {
    NodeBuilder split(g, "Split", "");
    split.input(x).attribute("axis", 1).attribute("num_outputs", 2).outputs(2);
    pair[0] = split.output(0);
    pair[1] = split.output(1);
  }
  const ValueId a = g.op("Concat").input(parts[0][0]).input(parts[1][1]).attribute("axis", 1);
  EXPECT_EQ(left(g, a), 2u);
}

TEST(CommonSubexpressions, LeavesEveryOutputItsOwnValue) {
  Graph g;
  const ValueId x = input(g);
  g.outputs = {g.op("Exp").input(x), g.op("Exp").input(x)};
  g.output_names = {"a", "b"};
  merge_common_subexpressions(g);
  EXPECT_NE(g.outputs[0], g.outputs[1]);
}

}  // namespace
}  // namespace hologram::graph
