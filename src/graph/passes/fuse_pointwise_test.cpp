#include "graph/passes/fuse_pointwise.h"

#include <gmock/gmock.h>

#include "graph/evaluate.h"
#include "graph/passes/groups.h"
#include "graph/passes/resolve.h"
#include "graph/testing/evaluate.h"
#include "graph/verify.h"

namespace hologram::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ValueId input(Graph& g, std::vector<Dim> dims, DType dtype = DType::f32) {
  return g.add_input("x" + std::to_string(g.inputs.size()),
                     ValueType::tensor(dtype, Shape(std::move(dims))));
}
Dim symbol(const char* name) { return Dim(std::string(name)); }

FusionReport fuse(Graph& g, std::vector<ValueId> outputs) {
  g.outputs = std::move(outputs);
  for (size_t i = 0; i < g.outputs.size(); ++i) g.output_names.push_back(std::to_string(i));
  EXPECT_TRUE(g.status()) << g.status().error().to_string();
  FusionReport report;
  const Status status = fuse_pointwise(g, report);
  EXPECT_TRUE(status) << status.error().to_string();
  const Status verified = verify(g);
  EXPECT_TRUE(verified) << verified.error().to_string() << g.to_text();
  return report;
}
std::vector<std::string> ops(const Graph& g) {
  std::vector<std::string> result;
  for (const Node& node : g.nodes) result.push_back(node.op);
  return result;
}

TEST(FusePointwise, MakesAChainOneNode) {
  Graph g;
  const ValueId x = input(g, {2, 3});
  const ValueId scaled = g.op("Mul").input(x).input(g.constant(0.5f));
  const ValueId moved =
      g.op("Add").input(scaled).input(g.add_constant(testing::tensor<float>({3}, {1, 2, 3})));
  const FusionReport report = fuse(g, {g.op("Relu").input(moved).name("end")});
  EXPECT_THAT(ops(g), ElementsAre("Pointwise"));
  EXPECT_EQ(g.nodes[0].outputs.size(), 1u);
  ASSERT_EQ(report.fused.size(), 1u);
  EXPECT_EQ(report.fused[0].operators, "Mul, Add, Relu");
  // And it computes what they compute.
  std::vector<kernels::Value> values;
  for (ValueId id : g.nodes[0].inputs)
    values.emplace_back(id == x ? testing::tensor<float>({2, 3}, {-4, -3, -9, 1, 2, 3})
                                : *g.value(id).constant);
  const auto results = evaluate_node(g, g.nodes[0], values);
  ASSERT_TRUE(results) << results.error().to_string();
  EXPECT_THAT(testing::elements<float>((*results)[0].tensor),
              ElementsAre(0, .5f, 0, 1.5f, 3, 4.5f));
}

TEST(FusePointwise, KeepsWhatOthersReadAsAnOutput) {
  Graph g;
  const ValueId x = input(g, {4, 4});
  const ValueId a = g.op("Exp").input(x), b = g.op("Sqrt").input(a), c = g.op("Neg").input(b);
  const ValueId product = g.op("MatMul").input(a).input(x);
  fuse(g, {c, product});
  EXPECT_THAT(ops(g), ElementsAre("Pointwise", "MatMul"));
  EXPECT_EQ(g.nodes[0].outputs, (std::vector{a, c}));
}

TEST(FusePointwise, JoinsGraphsWithSeveralPaths) {
  Graph g;
  const ValueId x = input(g, {symbol("n"), 3}), y = input(g, {symbol("n"), 3});
  const ValueId a = g.op("Sigmoid").input(x), b = g.op("Tanh").input(y);
  const ValueId c = g.op("Mul").input(a).input(b), d = g.op("Add").input(c).input(a);
  fuse(g, {d});
  EXPECT_THAT(ops(g), ElementsAre("Pointwise"));
}

TEST(FusePointwise, NeverMakesACycle) {
  Graph g;
  const ValueId x = input(g, {4, 4});
  const ValueId a = g.op("Exp").input(x);
  const ValueId product = g.op("MatMul").input(a).input(a);
  const FusionReport report = fuse(g, {g.op("Add").input(a).input(product)});
  EXPECT_THAT(ops(g), ElementsAre("Exp", "MatMul", "Add"));
  ASSERT_EQ(report.apart.size(), 2u);
  EXPECT_THAT(report.apart[0].reason, HasSubstr("another operator reads the one"));
}

TEST(FusePointwise, NeverMakesACycleThroughAnotherGroup) {
  // a -> b joined; m reads b and feeds c; c must not pull a's group and m's reader together.
  Graph g;
  const ValueId x = input(g, {4, 4});
  const ValueId a = g.op("Exp").input(x), b = g.op("Neg").input(a);
  const ValueId small = g.op("ReduceSum").input(b).attribute("keepdims", 1);
  const ValueId c = g.op("Abs").input(small), d = g.op("Sqrt").input(c);  // another group
  const ValueId e = g.op("Mul").input(a).input(d);                        // broadcast from [1, 1]
  fuse(g, {e});
  EXPECT_THAT(ops(g), ElementsAre("Pointwise", "ReduceSum", "Pointwise", "Mul"));
}

TEST(FusePointwise, NeedsShapesThatAreProvablyEqual) {
  Graph g;  // n may be 1 or 5: Relu's result may be smaller than Add's
  const ValueId x = input(g, {symbol("n")}), y = input(g, {5});
  const FusionReport report = fuse(g, {g.op("Add").input(g.op("Relu").input(x)).input(y)});
  EXPECT_THAT(ops(g), ElementsAre("Relu", "Add"));
  EXPECT_THAT(report.apart[0].reason, HasSubstr("not provably of one shape"));
  Graph h;  // n and m may differ, but the sum's shape, unknown, is that of what follows
  const ValueId a = input(h, {symbol("n")}), b = input(h, {symbol("m")});
  fuse(h, {h.op("Relu").input(h.op("Add").input(a).input(b))});
  EXPECT_THAT(ops(h), ElementsAre("Pointwise"));
}

TEST(FusePointwise, DoesNotRepeatWorkOnSmallerTensors) {
  Graph g;  // the gate of a squeeze-and-excitation block
  const ValueId x = input(g, {1, 8, 6, 6}), gate = input(g, {1, 8, 1, 1});
  fuse(g, {g.op("Mul").input(x).input(g.op("Sigmoid").input(gate))});
  EXPECT_THAT(ops(g), ElementsAre("Sigmoid", "Mul"));
}

TEST(FusePointwise, StopsAtItsLimits) {
  Graph g;
  ValueId x = input(g, {2});
  for (int i = 0; i < 200; ++i) x = g.op("Abs").input(g.op("Neg").input(x));
  const FusionReport report = fuse(g, {x});
  EXPECT_GT(g.nodes.size(), 4u);
  EXPECT_LT(g.nodes.size(), 30u);
  size_t members = 0;
  for (const Node& node : g.nodes) members += node.subgraphs[0].graph->nodes.size();
  EXPECT_EQ(members, 400u);
}

TEST(FusePointwise, LeavesTypesThatDoNotCompute) {
  Graph g;  // strings are chosen by a kernel
  const ValueId c = input(g, {2}, DType::boolean), s = input(g, {2}, DType::string);
  const ValueId inverted = g.op("Not").input(c);
  fuse(g, {g.op("Where").input(inverted).input(s).input(s)});
  EXPECT_THAT(ops(g), ElementsAre("Not", "Where"));
}

TEST(FusePointwise, MovesNodesOnlyWhereTheyMayGo) {
  // Two chains, interleaved with kernels that read and feed them.
  Graph g;
  const ValueId x = input(g, {4, 4});
  ValueId a = x, b = x;
  for (int i = 0; i < 6; ++i) {
    a = g.op("Neg").input(a);
    b = g.op("Abs").input(b);
    const ValueId m = g.op("MatMul").input(i % 2 ? a : b).input(x);
    (i % 2 ? b : a) = g.op("Add").input(i % 2 ? b : a).input(m);
  }
  const size_t before = g.nodes.size();
  fuse(g, {a, b});
  EXPECT_LT(g.nodes.size(), before);
}

TEST(FusePointwise, WorksInsideSubgraphs) {
  Graph g;
  const ValueId condition = input(g, {}, DType::boolean), x = input(g, {2});
  Node node{.op = "If", .inputs = {condition}};
  for (const char* name : {"then_branch", "else_branch"}) {
    auto branch = std::make_unique<Graph>();
    const ValueId inner = branch->add_value("x", g.value(x).type);
    branch->captures.push_back({x, inner});
    branch->outputs = {branch->op("Neg").input(branch->op("Exp").input(inner))};
    branch->output_names = {"y"};
    node.subgraphs.push_back({name, std::move(branch)});
  }
  node.outputs = {g.add_value("y")};
  const ValueId y = node.outputs[0];
  g.nodes.push_back(std::move(node));
  ASSERT_TRUE(resolve(g));
  const FusionReport report = fuse(g, {y});
  EXPECT_EQ(report.fused.size(), 2u);
}

TEST(Groups, OrdersGroupsByWhatTheyRead) {
  // 0 -> 1 -> 3, 0 -> 2 -> 3 with 4 reading 1: merging 1 and 3 leaves 2 before both.
  Groups groups(5);
  groups.add(0, {});
  groups.add(1, std::vector<uint32_t>{0});
  groups.add(2, std::vector<uint32_t>{0});
  groups.add(3, std::vector<uint32_t>{1, 2});
  groups.add(4, std::vector<uint32_t>{1});
  EXPECT_TRUE(groups.can_merge(1, 3));
  groups.merge(1, 3);
  EXPECT_FALSE(groups.can_merge(0, 3));  // 0 -> 2 -> {1, 3}
  EXPECT_THAT(groups.in_order(),
              ElementsAre(ElementsAre(0), ElementsAre(2), ElementsAre(1, 3), ElementsAre(4)));
}

}  // namespace
}  // namespace hologram::graph
