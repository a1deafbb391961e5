// Plans inside plans allocate nothing either, once they have run: what a turn hands to the next,
// what is collected, and branches that pass on what they were given.
#include "compiler/count_allocations.h"
#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;

// The node at the end of the graph; its outputs.
std::vector<ValueId> add(Graph& g, Node node, size_t outputs) {
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(g.add_value(node.op + std::to_string(i)));
  const std::vector<ValueId> made = node.outputs;
  g.nodes.push_back(std::move(node));
  return made;
}

// One branch negates x, the other passes it on.
ValueId add_if(Graph& g, ValueId condition, ValueId x) {
  Node node{.op = "If", .opset = 16, .inputs = {condition}};
  for (const char* name : {"then_branch", "else_branch"}) {
    auto branch = std::make_unique<Graph>();
    const ValueId inner = branch->add_value("x", g.value(x).type);
    branch->captures.push_back({x, inner});
    const bool negates = std::string_view(name) == "then_branch";
    branch->outputs = {negates ? ValueId(branch->op("Neg").input(inner)) : inner};
    branch->output_names = {"y"};
    node.subgraphs.push_back({name, std::move(branch)});
  }
  return add(g, std::move(node), 1)[0];
}

// Runs once for every set of inputs, then again and again.
void expect_no_allocations(const Session& session, const std::vector<std::vector<Value>>& inputs,
                           const std::vector<std::vector<Tensor>>& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto status = session.run_into(inputs[i], outputs[i]);
    ASSERT_TRUE(status.has_value()) << status.error().to_string();
  }
  const int64_t before = allocations();
  for (int turn = 0; turn < 5; ++turn)
    for (size_t i = 0; i < inputs.size(); ++i)
      ASSERT_TRUE(session.run_into(inputs[i], outputs[i]).has_value());
  EXPECT_EQ(allocations() - before, 0);
}

Value flag(bool value) {
  Tensor t = *Tensor::allocate(DType::boolean, {});
  *t.as<bool>() = value;
  return Value(t);
}

TEST(ControlAllocation, IfTakesBothBranches) {
  Graph g;
  const ValueId c = add_input(g, "c", {}, DType::boolean), y = add_input(g, "x", {4});
  const ValueId result = add_if(g, c, g.op("CumSum").input(y).input(g.constant(int64_t{0})));
  const Session session = session_of(std::move(g), {result});
  const Value given(tensor<float>({4}, {1, 2, 3, 4}));
  const std::vector<std::vector<Tensor>> out{{*Tensor::allocate(DType::f32, {4})},
                                             {*Tensor::allocate(DType::f32, {4})}};
  expect_no_allocations(session, {{flag(true), given}, {flag(false), given}}, out);
  EXPECT_EQ(out[0][0].as<float>()[3], -10);
  EXPECT_EQ(out[1][0].as<float>()[3], 10);
}

// state' = -cumsum(state) in the first turn, cumsum(state) in the others; every state is collected.
TEST(ControlAllocation, LoopCarriesAndCollects) {
  Graph g;
  const ValueId trips = add_input(g, "trips", {}, DType::i64), x = add_input(g, "x", {3});
  auto body = std::make_unique<Graph>();
  const ValueId turn = add_input(*body, "i", {}, DType::i64);
  const ValueId going = add_input(*body, "going", {}, DType::boolean);
  const ValueId state = add_input(*body, "state", {3});
  const ValueId sum = body->op("CumSum").input(state).input(body->constant(int64_t{0}));
  const ValueId next =
      add_if(*body, body->op("Less").input(turn).input(body->constant(int64_t{1})), sum);
  body->value(next).type = body->value(sum).type;
  body->outputs = {body->op("Identity").input(going), next, next};
  body->output_names = {"going", "state", "all"};
  Node loop{.op = "Loop", .opset = 16, .inputs = {trips, graph::kNoValue, x}};
  loop.subgraphs.push_back({"body", std::move(body)});
  const auto made = add(g, std::move(loop), 2);
  const Session session = session_of(std::move(g), {made[0], made[1]});
  const Value start(tensor<float>({3}, {1, 1, 1}));
  std::vector<std::vector<Value>> inputs;
  std::vector<std::vector<Tensor>> outputs;
  for (int64_t count : {3, 7, 1, 0}) {
    inputs.push_back({Value(tensor<int64_t>({}, {count})), start});
    outputs.push_back(
        {*Tensor::allocate(DType::f32, {3}), *Tensor::allocate(DType::f32, {count, 3})});
  }
  expect_no_allocations(session, inputs, outputs);
  // -(1 2 3), -(1 3 6), -(1 4 10)
  EXPECT_EQ(outputs[0][0].as<float>()[2], -10);
  EXPECT_EQ(outputs[0][1].as<float>()[2], -3);
  EXPECT_EQ(outputs[0][1].as<float>()[5], -6);
  EXPECT_EQ(outputs[0][1].as<float>()[8], -10);
  EXPECT_EQ(outputs[3][0].as<float>()[2], 1);
}

TEST(ControlAllocation, ScanCarriesAndCollects) {
  Graph g;
  const ValueId start = add_input(g, "start", {2}), rows = add_input(g, "rows", {symbol("n"), 2});
  auto body = std::make_unique<Graph>();
  const ValueId state = add_input(*body, "state", {2}), row = add_input(*body, "row", {2});
  const ValueId sum = body->op("Add").input(state).input(row);
  body->outputs = {sum, body->op("CumSum").input(sum).input(body->constant(int64_t{0}))};
  body->output_names = {"state", "all"};
  Node scan{.op = "Scan", .opset = 16, .inputs = {start, rows}};
  scan.attributes.set("num_scan_inputs", int64_t{1});
  scan.subgraphs.push_back({"body", std::move(body)});
  const auto made = add(g, std::move(scan), 2);
  const Session session = session_of(std::move(g), {made[0], made[1]});
  std::vector<std::vector<Value>> inputs;
  std::vector<std::vector<Tensor>> outputs;
  for (int64_t n : {4, 9}) {
    inputs.push_back(
        {Value(tensor<float>({2}, {0, 1})),
         Value(tensor<float>({n, 2}, std::vector<float>(static_cast<size_t>(2 * n), 1)))});
    outputs.push_back({*Tensor::allocate(DType::f32, {2}), *Tensor::allocate(DType::f32, {n, 2})});
  }
  expect_no_allocations(session, inputs, outputs);
  EXPECT_EQ(outputs[1][0].as<float>()[1], 10);
  EXPECT_EQ(outputs[1][1].as<float>()[17], 19);
}

TEST(ControlAllocation, SequenceMapKeepsItsElements) {
  Graph g;
  const auto element = graph::ValueType::tensor(DType::f32, Shape(std::vector<Dim>{2}));
  const ValueId x = g.add_input("x", graph::ValueType::sequence(element));
  auto body = std::make_unique<Graph>();
  const ValueId part = add_input(*body, "part", {2});
  body->outputs = {body->op("CumSum").input(part).input(body->constant(int64_t{0}))};
  body->output_names = {"y"};
  Node map{.op = "SequenceMap", .opset = 17, .inputs = {x}};
  map.subgraphs.push_back({"body", std::move(body)});
  const ValueId mapped = add(g, std::move(map), 1)[0];
  g.value(mapped).type = graph::ValueType::sequence(element);
  const ValueId y = g.op("SequenceAt").input(mapped).input(g.constant(int64_t{2}));
  const Session session = session_of(std::move(g), {y});
  std::vector<Value> elements;
  for (float value : {1.f, 2.f, 3.f}) elements.emplace_back(tensor<float>({2}, {value, value}));
  const std::vector<std::vector<Tensor>> outputs{{*Tensor::allocate(DType::f32, {2})}};
  expect_no_allocations(session, {{Value(std::move(elements))}}, outputs);
  EXPECT_EQ(outputs[0][0].as<float>()[1], 6);
}

TEST(ControlAllocation, AnEndlessLoopEndsWhereItsStepsAreLimited) {
  Graph g;
  const ValueId x = add_input(g, "x", {3});
  auto body = std::make_unique<Graph>();
  add_input(*body, "i", {}, DType::i64);
  const ValueId going = add_input(*body, "going", {}, DType::boolean);
  const ValueId state = add_input(*body, "state", {3});
  body->outputs = {going, state};
  body->output_names = {"going", "state"};
  Node loop{.op = "Loop", .opset = 16, .inputs = {graph::kNoValue, graph::kNoValue, x}};
  loop.subgraphs.push_back({"body", std::move(body)});
  const auto made = add(g, std::move(loop), 1);
  Session session = session_of(std::move(g), {made[0]});
  session.limit_steps(1000);
  const auto result = session.run(std::vector{Value(varied({3}))});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace hologram::compiler
