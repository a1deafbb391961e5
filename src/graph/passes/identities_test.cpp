#include "graph/passes/identities.h"

#include <gmock/gmock.h>

#include "graph/passes/dead_code.h"
#include "graph/passes/resolve.h"
#include "graph/testing/evaluate.h"
#include "graph/verify.h"

namespace hologram::graph {
namespace {

using graph::testing::bools;
using graph::testing::scalar;
using graph::testing::tensor;
using graph::testing::vector;
using ::testing::ElementsAre;

// x -> [what is tested] -> Shrink -> output: what is left before Shrink.
struct Chain {
  Graph g;
  ValueId x;

  explicit Chain(DType dtype = DType::f32, std::vector<Dim> dims = {2, 3}) {
    x = g.add_input("x", ValueType::tensor(dtype, Shape(std::move(dims))));
  }
  std::vector<std::string> left(ValueId value) {
    g.outputs = {g.op("Shrink").input(value).name("end")};
    g.output_names = {"y"};
    EXPECT_TRUE(g.status()) << g.status().error().to_string();
    EXPECT_TRUE(remove_identities(g));
    remove_dead_code(g);
    const Status verified = verify(g);
    EXPECT_TRUE(verified) << verified.error().to_string();
    std::vector<std::string> ops;
    for (const Node& node : g.nodes)
      if (node.name != "end") ops.push_back(node.op);
    return ops;
  }
};

// The operators left of x op constant.
std::vector<std::string> with_constant(const char* op, Tensor constant, bool left = false,
                                       DType dtype = DType::f32) {
  Chain c(dtype);
  const ValueId k = c.g.add_constant(std::move(constant));
  return c.left(c.g.op(op).input(left ? k : c.x).input(left ? c.x : k));
}

TEST(Identities, DropsNeutralOperands) {
  EXPECT_THAT(with_constant("Mul", scalar(1.f)), ElementsAre());
  EXPECT_THAT(with_constant("Mul", scalar(1.f), true), ElementsAre());
  EXPECT_THAT(with_constant("Mul", tensor<float>({3}, {1, 1, 1})), ElementsAre());
  EXPECT_THAT(with_constant("Div", scalar(1.f)), ElementsAre());
  EXPECT_THAT(with_constant("Sub", scalar(0.f)), ElementsAre());
  EXPECT_THAT(with_constant("Add", scalar(-0.f)), ElementsAre());
  EXPECT_THAT(with_constant("Add", scalar<int32_t>(0), false, DType::i32), ElementsAre());
  EXPECT_THAT(with_constant("BitwiseAnd", scalar<int32_t>(-1), false, DType::i32), ElementsAre());
}

TEST(Identities, KeepsWhatChangesABit) {
  EXPECT_THAT(with_constant("Add", scalar(0.f)), ElementsAre("Add"));   // -0 + 0 is +0
  EXPECT_THAT(with_constant("Sub", scalar(-0.f)), ElementsAre("Sub"));  // -0 - -0 too
  EXPECT_THAT(with_constant("Mul", scalar(0.f)), ElementsAre("Mul"));   // NaN * 0
  EXPECT_THAT(with_constant("Div", scalar(1.f), true), ElementsAre("Div"));
  EXPECT_THAT(with_constant("Sub", scalar(0.f), true), ElementsAre("Sub"));
  // The constant makes the result larger.
  EXPECT_THAT(with_constant("Mul", tensor<float>({2, 1, 1}, {1, 1})), ElementsAre("Mul"));
  EXPECT_THAT(with_constant("Mul", tensor<float>({3}, {1, 1, 2})), ElementsAre("Mul"));
}

TEST(Identities, LooksAtConditionsThatAreConstant) {
  for (const bool condition : {true, false}) {
    Chain c;
    const ValueId other = c.g.add_constant(tensor<float>({2, 3}, std::vector<float>(6)));
    c.left(
        c.g.op("Where").input(c.g.add_constant(bools({1}, {condition}))).input(c.x).input(other));
    EXPECT_EQ(c.g.nodes.back().inputs[0] == other, !condition);
  }
  Chain c;  // both branches take part
  EXPECT_THAT(c.left(c.g.op("Where")
                         .input(c.g.add_constant(bools({3}, {true, false, true})))
                         .input(c.x)
                         .input(c.g.constant(0.f))),
              ElementsAre("Where"));
}

TEST(Identities, UndoesWhatIsDoneTwice) {
  Chain negated;
  EXPECT_THAT(negated.left(negated.g.op("Neg").input(negated.g.op("Neg").input(negated.x))),
              ElementsAre());
  Chain relu;
  EXPECT_THAT(relu.left(relu.g.op("Relu").input(relu.g.op("Relu").input(relu.x))),
              ElementsAre("Relu"));
  Chain wide(DType::i32);
  auto cast = [](Graph& g, ValueId v, DType to) {
    return g.op("Cast").input(v).attribute("to", static_cast<int64_t>(to)).output();
  };
  EXPECT_THAT(wide.left(cast(wide.g, cast(wide.g, wide.x, DType::i64), DType::i32)), ElementsAre());
  Chain narrow(DType::i32);
  EXPECT_THAT(narrow.left(cast(narrow.g, cast(narrow.g, narrow.x, DType::i8), DType::i32)),
              ElementsAre("Cast", "Cast"));
  Chain real(DType::i32);  // 2^31 - 1 is no float
  EXPECT_THAT(real.left(cast(real.g, cast(real.g, real.x, DType::f32), DType::i32)),
              ElementsAre("Cast", "Cast"));
  Chain same;
  EXPECT_THAT(same.left(cast(same.g, same.x, DType::f32)), ElementsAre());
}

TEST(Identities, JoinsTransposes) {
  auto transpose = [](Graph& g, ValueId v, std::vector<int64_t> perm) {
    return g.op("Transpose").input(v).attribute("perm", std::move(perm)).output();
  };
  Chain back(DType::f32, {2, 3, Dim(std::string("n"))});
  EXPECT_THAT(back.left(transpose(back.g, transpose(back.g, back.x, {1, 2, 0}), {2, 0, 1})),
              ElementsAre());
  Chain twice(DType::f32, {2, 3, 4});
  const ValueId moved = transpose(twice.g, transpose(twice.g, twice.x, {1, 2, 0}), {1, 2, 0});
  EXPECT_THAT(twice.left(moved), ElementsAre("Transpose"));
  const auto perm = twice.g.nodes[0].attributes.integers("perm");
  EXPECT_THAT(std::vector<int64_t>(perm.begin(), perm.end()), ElementsAre(2, 0, 1));
}

TEST(Identities, JoinsReshapes) {
  Chain c(DType::f32, {2, 3});
  const ValueId flat = c.g.op("Reshape").input(c.x).input(c.g.constant(std::vector<int64_t>{6}));
  EXPECT_THAT(
      c.left(c.g.op("Reshape").input(flat).input(c.g.constant(std::vector<int64_t>{3, -1}))),
      ElementsAre("Reshape"));
  Chain zero(DType::f32, {2, 3});  // the 0 copies a dimension of the Reshape before
  const ValueId turned =
      zero.g.op("Reshape").input(zero.x).input(zero.g.constant(std::vector<int64_t>{3, 2}));
  EXPECT_THAT(zero.left(zero.g.op("Reshape").input(turned).input(
                  zero.g.constant(std::vector<int64_t>{0, 2, 1}))),
              ElementsAre("Reshape", "Reshape"));
  Chain back(DType::f32, {2, Dim(std::string("n"))});
  const ValueId one =
      back.g.op("Unsqueeze").input(back.x).input(back.g.constant(std::vector<int64_t>{0}));
  EXPECT_THAT(
      back.left(back.g.op("Squeeze").input(one).input(back.g.constant(std::vector<int64_t>{0}))),
      ElementsAre());
}

TEST(Identities, DropsMovementThatMovesNothing) {
  auto ints = [](Graph& g, std::vector<int64_t> v) { return g.constant(std::move(v)); };
  Chain pad;
  EXPECT_THAT(pad.left(pad.g.op("Pad").input(pad.x).input(ints(pad.g, {0, 0, 0, 0}))),
              ElementsAre());
  Chain tile;
  EXPECT_THAT(tile.left(tile.g.op("Tile").input(tile.x).input(ints(tile.g, {1, 1}))),
              ElementsAre());
  Chain expand(DType::f32, {Dim(std::string("n")), 3});
  EXPECT_THAT(expand.left(expand.g.op("Expand").input(expand.x).input(ints(expand.g, {1, 3}))),
              ElementsAre());
  Chain concat;
  EXPECT_THAT(concat.left(concat.g.op("Concat").input(concat.x).attribute("axis", 0)),
              ElementsAre());
  auto slice = [&](int64_t start, int64_t end, int64_t step) {
    Chain c;
    return c.left(c.g.op("Slice")
                      .input(c.x)
                      .input(ints(c.g, {start}))
                      .input(ints(c.g, {end}))
                      .input(ints(c.g, {1}))
                      .input(ints(c.g, {step})));
  };
  EXPECT_THAT(slice(0, 1000, 1), ElementsAre());
  EXPECT_THAT(slice(1, 1000, 1), ElementsAre("Slice"));
  EXPECT_THAT(slice(-1, -1000, -1), ElementsAre("Slice"));  // backwards
}

TEST(Identities, LeavesOutputsThatAreInputs) {
  Graph g;
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({2})));
  const ValueId a = g.op("Identity").input(x), relu = g.op("Relu").input(x),
                b = g.op("Identity").input(relu), c = g.op("Identity").input(relu);
  g.outputs = {a, b, c};
  g.output_names = {"a", "b", "c"};
  ASSERT_TRUE(remove_identities(g));
  remove_dead_code(g);
  ASSERT_TRUE(verify(g));
  EXPECT_NE(g.outputs[0], x);
  EXPECT_NE(g.outputs[1], g.outputs[2]);
}

TEST(Identities, WorksInsideSubgraphs) {
  Graph g;
  const ValueId condition = g.add_input("c", ValueType::tensor(DType::boolean, Shape()));
  const ValueId x = g.add_input("x", ValueType::tensor(DType::f32, Shape({2})));
  const ValueId copy = g.op("Identity").input(x);
  Node node{.op = "If", .inputs = {condition}};
  for (const char* name : {"then_branch", "else_branch"}) {
    auto branch = std::make_unique<Graph>();
    const ValueId inner = branch->add_value("x", g.value(x).type);
    branch->captures.push_back({copy, inner});
    const ValueId one = branch->op("Mul").input(inner).input(branch->constant(1.f));
    branch->outputs = {branch->op("Exp").input(one)};
    branch->output_names = {"y"};
    node.subgraphs.push_back({name, std::move(branch)});
  }
  node.outputs = {g.add_value("y")};
  g.outputs = node.outputs;
  g.output_names = {"y"};
  g.nodes.push_back(std::move(node));
  ASSERT_TRUE(resolve(g));
  ASSERT_TRUE(remove_identities(g));
  remove_dead_code(g);
  const Status verified = verify(g);
  ASSERT_TRUE(verified) << verified.error().to_string();
  ASSERT_EQ(g.nodes.size(), 1u);
  EXPECT_EQ(g.nodes[0].subgraphs[0].graph->nodes.size(), 1u);
  EXPECT_EQ(g.nodes[0].subgraphs[0].graph->captures[0].outer, x);
}

}  // namespace
}  // namespace hologram::graph
