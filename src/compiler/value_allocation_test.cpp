// Sequences, strings and random numbers: a run equal to one before allocates for its results alone.
#include "compiler/count_allocations.h"
#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueType;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using testing::ElementsAre;

// Every set of inputs once, then all of them again and again. The results of the last.
std::vector<Value> run_without_allocations(const Session& session,
                                           const std::vector<std::vector<Value>>& inputs) {
  std::vector<Value> last;
  for (const auto& given : inputs) {
    auto results = session.run(given);
    EXPECT_TRUE(results.has_value()) << results.error().to_string();
    if (!results) return {};
  }
#ifndef HOLOGRAM_SANITIZED
  for (int turn = 0; turn < 3; ++turn)
#endif
    for (const auto& given : inputs) {
      int64_t before = allocations();
      last = *session.run(given);
      const int64_t in_run = allocations() - before;
      before = allocations();
      std::vector<Value> copies(last.size());
      for (size_t i = 0; i < last.size(); ++i) copies[i] = *last[i].clone();
      const int64_t for_results = allocations() - before;
#ifndef HOLOGRAM_SANITIZED  // allocates for itself
      EXPECT_EQ(in_run - for_results, 0);
#endif
    }
  return last;
}

std::vector<float> floats(const Value& value) {
  const auto span = value.tensor.span<float>();
  return {span.begin(), span.end()};
}
std::vector<std::string> texts(const Value& value) {
  const auto span = value.tensor.strings();
  return {span.begin(), span.end()};
}
Value strings(const kernels::Dims& dims, std::vector<std::string> list) {
  return Value(*Tensor::from_strings(dims, std::move(list)));
}

ValueId scalar(Graph& g, int64_t value) { return g.constant(value); }

TEST(ValueAllocation, SequenceOperators) {
  Graph g;
  const ValueId x = add_input(g, "x", {symbol("n"), 2}), y = add_input(g, "y", {1, 2});
  const ValueId parts = g.op("SplitToSequence").input(x).input(scalar(g, 2));
  const ValueId longer = g.op("SequenceInsert").input(parts).input(y).input(scalar(g, 1));
  const ValueId shorter = g.op("SequenceErase").input(longer).input(scalar(g, 0));
  const ValueId joined = g.op("ConcatFromSequence").input(shorter).attribute("axis", int64_t{0});
  const ValueId pair = g.op("SequenceConstruct").input(y).input(joined);
  const ValueId second = g.op("SequenceAt").input(pair).input(scalar(g, -1));
  const ValueId length = g.op("SequenceLength").input(longer);
  const Session session = session_of(std::move(g), {second, length, longer});
  std::vector<std::vector<Value>> inputs;
  for (int64_t n : {8, 5}) inputs.push_back({Value(varied({n, 2})), Value(varied({1, 2}, 7))});
  const std::vector<Value> results = run_without_allocations(session, inputs);
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(*results[1].tensor.as<int64_t>(), 4);  // 2, y, 2, 1
  ASSERT_EQ(results[2].sequence->size(), 4u);
  EXPECT_EQ(floats((*results[2].sequence)[1]), floats(inputs[1][1]));
  EXPECT_EQ(results[0].tensor.dims, (kernels::Dims{4, 2}));
}

TEST(ValueAllocation, OptionalOperators) {
  Graph g;
  const ValueId x = add_input(g, "x", {3});
  const ValueId there = g.op("Optional").input(g.op("CumSum").input(x).input(scalar(g, 0)));
  const ValueId y = g.op("OptionalGetElement").input(there);
  const Session session = session_of(std::move(g), {y});
  const auto results = run_without_allocations(session, {{Value(tensor<float>({3}, {1, 2, 3}))}});
  EXPECT_THAT(floats(results.at(0)), ElementsAre(1, 3, 6));
}

// Each turn adds its state to a sequence, which outlives the turn.
TEST(ValueAllocation, ASequenceThatGrowsInALoop) {
  Graph g;
  const auto element = ValueType::tensor(DType::f32, Shape(std::vector<Dim>{2}));
  const ValueId trips = add_input(g, "trips", {}, DType::i64), x = add_input(g, "x", {2});
  auto body = std::make_unique<Graph>();
  add_input(*body, "i", {}, DType::i64);
  const ValueId going = add_input(*body, "going", {}, DType::boolean);
  const ValueId list = body->add_input("list", ValueType::sequence(element));
  const ValueId state = add_input(*body, "state", {2});
  const ValueId next = body->op("CumSum").input(state).input(scalar(*body, 0));
  body->outputs = {body->op("Identity").input(going),
                   body->op("SequenceInsert").input(list).input(next), next};
  body->output_names = {"going", "list", "state"};
  const ValueId empty = g.op("SequenceEmpty");
  Node loop{.op = "Loop", .opset = 16, .inputs = {trips, graph::kNoValue, empty, x}};
  loop.subgraphs.push_back({"body", std::move(body)});
  loop.outputs = {g.add_value("list", ValueType::sequence(element)), g.add_value("state")};
  const std::vector<ValueId> made = loop.outputs;
  g.nodes.push_back(std::move(loop));
  const Session session = session_of(std::move(g), {made[0], made[1]});
  std::vector<std::vector<Value>> inputs;
  for (int64_t count : {5, 2, 9})
    inputs.push_back({Value(tensor<int64_t>({}, {count})), Value(tensor<float>({2}, {1, 1}))});
  const std::vector<Value> results = run_without_allocations(session, inputs);
  ASSERT_EQ(results.size(), 2u);
  ASSERT_EQ(results[0].sequence->size(), 9u);
  EXPECT_THAT(floats(results[0].sequence->at(2)), ElementsAre(1, 4));
  EXPECT_THAT(floats(results[1]), ElementsAre(1, 10));
}

TEST(ValueAllocation, StringOperators) {
  Graph g;
  const ValueId x = add_input(g, "x", {symbol("n")}, DType::string);
  const ValueId both = g.op("StringConcat").input(x).input(x);
  const ValueId upper =
      g.op("StringNormalizer").input(both).attribute("case_change_action", "UPPER");
  const ValueId words = g.op("StringSplit").input(both).attribute("delimiter", " ");
  const ValueId matches =
      g.op("RegexFullMatch").input(x).attribute("pattern", "[a-z]+ .*(end|stop)");
  const ValueId same = g.op("Unique").input(both);
  const ValueId picked = g.op("Gather").input(upper).input(g.constant(int64_t{1}));
  const Session session = session_of(std::move(g), {upper, words, matches, same, picked}, false);
  const std::vector<std::vector<Value>> inputs = {
      {strings({2}, {"a text that is longer than a short one, end", "another one"})},
      {strings({3}, {"short end", "a text of some length that ends", "x"})}};
  const std::vector<Value> results = run_without_allocations(session, inputs);
  ASSERT_EQ(results.size(), 5u);
  EXPECT_THAT(texts(results[0]),
              ElementsAre("SHORT ENDSHORT END",
                          "A TEXT OF SOME LENGTH THAT ENDSA TEXT OF SOME LENGTH THAT ENDS", "XX"));
  EXPECT_THAT(texts(results[4]), ElementsAre(texts(results[0])[1]));
  EXPECT_TRUE(results[2].tensor.as<bool>()[0]);
  EXPECT_FALSE(results[2].tensor.as<bool>()[1]);
}

TEST(ValueAllocation, NumbersToTextsAndBack) {
  Graph g;
  const ValueId x = add_input(g, "x", {symbol("n")}, DType::f64);
  const ValueId text = g.op("Cast").input(x).attribute("to", static_cast<int64_t>(DType::string));
  const ValueId back = g.op("Cast").input(text).attribute("to", static_cast<int64_t>(DType::f64));
  const Session session = session_of(std::move(g), {text, back}, false);
  const std::vector<Value> results =
      run_without_allocations(session, {{Value(tensor<double>({3}, {1.0 / 3, -1e-300 / 7, 5}))}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(texts(results[0])[0], "0.3333333333333333");
  EXPECT_EQ(results[1].tensor.as<double>()[1], -1e-300 / 7);
}

// A text that grows by one word each turn; all of them are collected.
TEST(ValueAllocation, StringsInALoop) {
  Graph g;
  const ValueId trips = add_input(g, "trips", {}, DType::i64);
  const ValueId x = add_input(g, "x", {1}, DType::string);
  auto body = std::make_unique<Graph>();
  add_input(*body, "i", {}, DType::i64);
  const ValueId going = add_input(*body, "going", {}, DType::boolean);
  const ValueId state = add_input(*body, "state", {1}, DType::string);
  const ValueId word = body->add_constant(*Tensor::from_strings({1}, {" and one more word"}));
  const ValueId next = body->op("StringConcat").input(state).input(word);
  body->outputs = {body->op("Identity").input(going), next, next};
  body->output_names = {"going", "state", "all"};
  Node loop{.op = "Loop", .opset = 16, .inputs = {trips, graph::kNoValue, x}};
  loop.subgraphs.push_back({"body", std::move(body)});
  loop.outputs = {g.add_value("state"), g.add_value("all")};
  const std::vector<ValueId> made = loop.outputs;
  g.nodes.push_back(std::move(loop));
  const Session session = session_of(std::move(g), {made[0], made[1]});
  std::vector<std::vector<Value>> inputs;
  for (int64_t count : {3, 1, 4})
    inputs.push_back({Value(tensor<int64_t>({}, {count})), strings({1}, {"x"})});
  const std::vector<Value> results = run_without_allocations(session, inputs);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].tensor.count(), 4);
  EXPECT_EQ(texts(results[1])[1], "x and one more word and one more word");
  EXPECT_EQ(texts(results[0])[0].size(), 1 + 4 * 18u);
}

// Other numbers in every turn, the same in every run.
TEST(ValueAllocation, RandomNumbersInALoop) {
  Graph g;
  const ValueId trips = add_input(g, "trips", {}, DType::i64);
  auto body = std::make_unique<Graph>();
  add_input(*body, "i", {}, DType::i64);
  const ValueId going = add_input(*body, "going", {}, DType::boolean);
  const ValueId chance = body->add_constant(tensor<float>({1, 4}, {0.5f, 0.5f, 0.5f, 0.5f}));
  body->outputs = {body->op("Identity").input(going),
                   body->op("RandomNormalLike").input(chance).attribute("seed", 3.0),
                   body->op("Bernoulli").input(chance),
                   body->op("Multinomial").input(chance).attribute("sample_size", int64_t{5})};
  body->output_names = {"going", "a", "b", "c"};
  Node loop{.op = "Loop", .opset = 16, .inputs = {trips, graph::kNoValue}};
  loop.subgraphs.push_back({"body", std::move(body)});
  loop.outputs = {g.add_value("a"), g.add_value("b"), g.add_value("c")};
  const std::vector<ValueId> made = loop.outputs;
  g.nodes.push_back(std::move(loop));
  const Session session = session_of(std::move(g), made);
  const std::vector<std::vector<Value>> inputs = {{Value(tensor<int64_t>({}, {3}))}};
  const std::vector<Value> results = run_without_allocations(session, inputs);
  ASSERT_EQ(results.size(), 3u);
  const std::vector<float> drawn = floats(results[0]);
  ASSERT_EQ(drawn.size(), 12u);
  EXPECT_NE(drawn[0], drawn[4]);
  EXPECT_NE(drawn[4], drawn[8]);
  EXPECT_EQ(floats(session.run(inputs[0])->at(0)), drawn);
}

}  // namespace
}  // namespace hologram::compiler
