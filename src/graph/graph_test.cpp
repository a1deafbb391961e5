#include "graph/graph.h"

#include <gmock/gmock.h>

#include <limits>

#include "graph/dim.h"
#include "graph/passes/dead_code.h"
#include "graph/passes/resolve.h"
#include "graph/verify.h"

namespace hologram::graph {
namespace {

using testing::HasSubstr;

Dim symbol(const char* name) { return Dim(std::string(name)); }

TEST(Dim, ComputesNumbersAndKeepsSymbols) {
  EXPECT_EQ(Dim(3) + Dim(4), Dim(7));
  EXPECT_EQ(Dim(-7) / Dim(2), Dim(-4));
  EXPECT_EQ(symbol("n") * Dim(1), symbol("n"));
  EXPECT_EQ(symbol("a") * symbol("b"), symbol("b") * symbol("a"));
  EXPECT_EQ(symbol("n") - symbol("n"), Dim(0));
  EXPECT_TRUE(is_unknown(unknown_dim() + Dim(1)));
  EXPECT_TRUE(is_unknown(Dim(std::numeric_limits<int64_t>::min()) / Dim(-1)));
  EXPECT_EQ(evaluate(Dim(std::string(1 << 20, '(')), {}), std::nullopt);  // a model's own name
  EXPECT_FALSE(equal_dims(unknown_dim(), unknown_dim()));
  EXPECT_EQ(evaluate((symbol("h") + Dim(2) - Dim(3)) / Dim(2) + Dim(1), {{"h", 224}}), 112);
  EXPECT_EQ(evaluate(ceil_div(symbol("n"), Dim(4)), {{"n", 9}}), 3);
  EXPECT_EQ(evaluate(symbol("n"), {}), std::nullopt);
}

TEST(Dim, KeepsMultiplesShort) {
  const Dim n(std::string("n")), m(std::string("m"));
  EXPECT_EQ(n * 12 * 32, n * 384);
  EXPECT_EQ(12 * (n * 32), n * 384);
  EXPECT_EQ((n * 384) / 384, n);
  EXPECT_EQ((n * 384) / 32, n * 12);
  EXPECT_EQ(((n + m) * 6) / 3, (n + m) * 2);
  EXPECT_EQ(((n * m) * 6) / 6, n * m);
  EXPECT_EQ((n * 5) / 2, Dim(std::string("((n*5)/2)")));  // rounds
  EXPECT_EQ((n * (m * 2)) / 2, m * n);
  EXPECT_EQ((n * 3) * (m * 2), (m * 6) * n);
  EXPECT_EQ(((n * m) * 288) / (m * 288), n);
  EXPECT_EQ((n * m * 12) / (m * 8), Dim(std::string("((n*3)/2)")));
  EXPECT_EQ(evaluate((n * m * 12) / (m * 8), {{"n", 3}, {"m", 5}}), 4);
  EXPECT_EQ((n * 3) / (m * 5), Dim(std::string("((n*3)/(m*5))")));
  EXPECT_EQ((((n - 7) / 3) * m * n) / (n * m), (n - 7) / 3);
  EXPECT_TRUE(is_unknown(n * Dim(std::string(1 << 20, '(') + "a*b)")));  // a model's own name
  EXPECT_EQ(((n * m) + 1) / n, Dim(std::string("(((m*n)+1)/n)")));       // no product
  EXPECT_EQ(evaluate((n * 5) / 2, {{"n", 3}}), 7);
  EXPECT_EQ(evaluate(n * INT64_MAX * 2, {{"n", 0}}), 0);
}

TEST(Dim, KeepsSizesOfConvolutionsInOneForm) {
  const Dim h(std::string("h"));
  const auto conv = [](const Dim& size, int64_t pads, int64_t kernel, int64_t stride) {
    return (size + pads - kernel) / stride + 1;
  };
  EXPECT_EQ(conv(h, 2, 3, 1), h);
  EXPECT_EQ(conv(h, 2, 3, 2), ceil_div(h, 2));
  EXPECT_EQ(conv(conv(h, 2, 3, 2), 4, 5, 2), ceil_div(h, 4));
  EXPECT_EQ(conv(conv(h, 6, 7, 2), 0, 1, 2) - 1 + 3 - 2, (h + 3) / 4);
  // By numbers: every form has the value of the steps that led to it.
  for (int64_t size = 1; size < 200; ++size)
    for (int64_t seed = 0; seed < 50; ++seed) {
      Dim symbolic = h, number = size;
      for (int64_t step = 0; step < 12; ++step) {
        const int64_t n = (seed * 7 + step * 5) % 9 + 1;
        const auto apply = [&](Dim& dim) {
          dim = (seed + step) % 3 == 0 ? dim / n : (seed / 3 + step) % 2 ? dim + n : dim - n;
        };
        apply(symbolic);
        apply(number);
        ASSERT_EQ(evaluate(symbolic, {{"h", size}}), number.value()) << symbolic.to_string();
      }
    }
  EXPECT_EQ(evaluate(h - INT64_MIN, {{"h", -1}}), INT64_MAX);
}

TEST(Dim, BroadcastsWithThePartOfATableThatIsUsed) {
  const Dim n(std::string("n"));
  EXPECT_EQ(*broadcast_dim(n, smaller(n, 512)), n);
  EXPECT_EQ(*broadcast_dim(smaller(n, 512), n), n);
  EXPECT_TRUE(is_unknown(*broadcast_dim(n, smaller(Dim(std::string("m")), 512))));
  EXPECT_TRUE(is_unknown(*broadcast_dim(n, smaller(n, Dim(std::string("m"))))));
}

TEST(Dim, Broadcasts) {
  EXPECT_EQ(*broadcast_shapes(Shape{2, 1, 3}, Shape{4, 1}), (Shape{2, 4, 3}));
  EXPECT_FALSE(broadcast_shapes(Shape{2}, Shape{3}).has_value());
}

Graph chain() {
  Graph g;
  ValueId x =
      g.add_input("x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{symbol("n"), 4})));
  ValueId unused = g.op("Exp").input(x);
  (void)unused;
  ValueId two = g.op("Add").input(g.constant(1.0f)).input(g.constant(1.0f));
  g.outputs = {g.op("Mul").input(x).input(two).name("scaled")};
  g.output_names = {"y"};
  return g;
}

TEST(Graph, InfersWhileItIsBuilt) {
  Graph g = chain();
  ASSERT_TRUE(g.status().has_value());
  EXPECT_EQ(g.value(g.outputs[0]).type.to_string(), "f32[n, 4]");
  EXPECT_THAT(g.to_text(), HasSubstr("scaled: f32[n, 4] = Mul(x, "));
  EXPECT_THAT(g.to_dot(), HasSubstr("digraph"));
}

TEST(Graph, RefusesWhatTheTableDoesNotAllow) {
  Graph g;
  ValueId a = g.constant(1.0f), b = g.constant(int64_t{1});
  ValueId bad = g.op("Add").input(a).input(b).name("mixed");
  (void)bad;
  ASSERT_FALSE(g.status().has_value());
  EXPECT_THAT(g.status().error().to_string(), HasSubstr("node 'mixed' (Add)"));
  Graph h;
  ValueId unknown = h.op("NoSuchOperator").input(h.constant(1.0f));
  (void)unknown;
  EXPECT_EQ(h.status().error().code(), ErrorCode::unsupported);
}

TEST(Resolve, FoldsConstantsAndDeadCodeGoes) {
  Graph g = chain();
  ASSERT_TRUE(resolve(g).has_value());
  remove_dead_code(g);
  ASSERT_TRUE(verify(g).has_value());
  ASSERT_EQ(g.nodes.size(), 1u);
  EXPECT_EQ(g.nodes[0].op, "Mul");
  EXPECT_EQ(*g.value(g.nodes[0].inputs[1]).constant->as<float>(), 2.0f);
}

TEST(Resolve, KeepsSymbolsThroughShapeArithmetic) {
  Graph g;
  ValueId x =
      g.add_input("x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{symbol("n"), 4, 6})));
  ValueId shape = g.op("Shape").input(x).attribute("end", 1);
  ValueId target =
      g.op("Concat").input(shape).input(g.constant(std::vector<int64_t>{-1})).attribute("axis", 0);
  g.outputs = {g.op("Reshape").input(x).input(target)};
  g.output_names = {"y"};
  ASSERT_TRUE(g.status().has_value()) << g.status().error().to_string();
  EXPECT_EQ(g.value(g.outputs[0]).type.shape->rank(), 2u);
  EXPECT_EQ((*g.value(g.outputs[0]).type.shape)[0], symbol("n"));
}

// Positions 0 .. length of a signal behind a strided step: as many as the signal has, so the two
// broadcast provably. A length that no value has may be negative.
TEST(Resolve, CountsARangeOverASizeByThatSize) {
  Graph g;
  const Dim frames = (symbol("samples") - 63) / 64;
  ValueId x =
      g.add_input("x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{symbol("n"), frames})));
  ValueId size = g.op("Squeeze").input(g.op("Shape").input(x).attribute("start", 1));
  const auto scalar = [&](int64_t number) -> ValueId {
    return g.op("Squeeze").input(g.constant(std::vector<int64_t>{number}));
  };
  const auto range_from = [&](int64_t start) {
    ValueId range = g.op("Range").input(scalar(start)).input(size).input(scalar(1));
    EXPECT_TRUE(g.status().has_value()) << g.status().error().to_string();
    return (*g.value(range).type.shape)[0];
  };
  EXPECT_EQ(range_from(0), frames);
  EXPECT_EQ(range_from(3), larger(frames - 3, 0));
}

// x without its axis 1 where that is 1, as models spell it out; in both branches an If of `asked`
// comes after that.
Graph squeezed_if_one(int64_t size) {
  Graph g;
  ValueId x = g.add_input(
      "x", ValueType::tensor(DType::f32, Shape(std::vector<Dim>{symbol("n"), size, 4})));
  ValueId asked = g.add_input("asked", ValueType::tensor(DType::boolean, Shape()));
  ValueId one = g.constant(std::vector<int64_t>{1});
  ValueId found = g.op("Gather").input(g.op("Shape").input(x)).input(one).attribute("axis", 0);
  Node node{.op = "If", .inputs = {g.op("Equal").input(found).input(one)}};
  for (const char* name : {"then_branch", "else_branch"}) {
    auto branch = std::make_unique<Graph>();
    ValueId inner = branch->add_value("x", g.value(x).type);
    ValueId captured = branch->add_value("asked", g.value(asked).type);
    branch->captures = {{x, inner}, {asked, captured}};
    Node nested{.op = "If", .inputs = {captured}};
    ValueId same =
        std::string_view(name) == "then_branch"
            ? branch->op("Squeeze").input(inner).input(branch->constant(std::vector<int64_t>{1}))
            : branch->op("Identity").input(inner);
    for (const char* deep : {"then_branch", "else_branch"}) {
      auto body = std::make_unique<Graph>();
      ValueId value = body->add_value("same", branch->value(same).type);
      body->captures = {{same, value}};
      body->outputs = {
          body->op(std::string_view(deep) == "then_branch" ? "Exp" : "Neg").input(value)};
      body->output_names = {"y"};
      nested.subgraphs.push_back({deep, std::move(body)});
    }
    nested.outputs = {branch->add_value("y")};
    branch->outputs = nested.outputs;
    branch->output_names = {"y"};
    branch->nodes.push_back(std::move(nested));
    node.subgraphs.push_back({name, std::move(branch)});
  }
  node.outputs = {g.add_value("y")};
  g.outputs = node.outputs;
  g.output_names = {"y"};
  g.nodes.push_back(std::move(node));
  return g;
}

TEST(Resolve, TakesTheBranchOfAConditionThatIsKnown) {
  for (const int64_t size : {1, 3}) {
    Graph g = squeezed_if_one(size);
    const Status resolved = resolve(g);
    ASSERT_TRUE(resolved) << resolved.error().to_string();
    remove_dead_code(g);
    const Status verified = verify(g);
    ASSERT_TRUE(verified) << verified.error().to_string();
    ASSERT_EQ(g.nodes.size(), 2u) << g.to_text();
    EXPECT_EQ(g.nodes[0].op, size == 1 ? "Squeeze" : "Identity");
    EXPECT_EQ(g.nodes[0].inputs[0], g.inputs[0]);
    EXPECT_EQ(g.nodes[1].op, "If");
    EXPECT_EQ(g.nodes[1].inputs[0], g.inputs[1]);
    EXPECT_EQ(g.nodes[1].subgraphs[0].graph->captures[0].outer, g.nodes[0].outputs[0]);
    EXPECT_EQ(g.value(g.outputs[0]).type.to_string(), size == 1 ? "f32[n, 4]" : "f32[n, 3, 4]");
  }
}

TEST(Verify, FindsAValueReadTooEarly) {
  Graph g = chain();
  std::swap(g.nodes.front(), g.nodes.back());
  auto status = verify(g);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code(), ErrorCode::verify_error);
}

}  // namespace
}  // namespace hologram::graph
