// Sessions: bound shapes, planned memory, the caller's buffers, many threads.
#include "runtime/session/session.h"

#include <thread>

#include "compiler/count_allocations.h"
#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::ValueId;
using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using testing::HasSubstr;

// A convolutional network: x[n, 3, size, size] -> [n, 5].
Session convolutional(Dim n, Dim size) {
  Graph g;
  ValueId x = add_input(g, "x", {n, 3, size, size});
  const ValueId w1 = g.add_constant(varied({8, 3, 3, 3}, 2)), b1 = g.add_constant(varied({8}, 3));
  ValueId y =
      g.op("Conv").input(x).input(w1).input(b1).attribute("pads", std::vector<int64_t>{1, 1, 1, 1});
  y = g.op("Relu").input(y);
  const ValueId w2 = g.add_constant(varied({8, 8, 3, 3}, 4));
  ValueId z = g.op("Conv").input(y).input(w2).attribute("pads", std::vector<int64_t>{1, 1, 1, 1});
  y = g.op("Add").input(z).input(y);
  y = g.op("MaxPool")
          .input(y)
          .attribute("kernel_shape", std::vector<int64_t>{2, 2})
          .attribute("strides", std::vector<int64_t>{2, 2});
  y = g.op("GlobalAveragePool").input(y);
  y = g.op("Flatten").input(y).attribute("axis", 1);
  y = g.op("MatMul").input(y).input(g.add_constant(varied({8, 5}, 5)));
  return session_of(std::move(g), {g.op("Softmax").input(y).attribute("axis", -1)});
}

// One layer of a transformer of width 16 with 2 heads: x[1, seq, 16] -> [1, seq, 16].
Session transformer(Dim seq) {
  Graph g;
  ValueId x = add_input(g, "x", {1, seq, 16});
  const auto heads = [&](uint32_t seed, std::vector<int64_t> order) {
    ValueId v = g.op("MatMul").input(x).input(g.add_constant(varied({16, 16}, seed)));
    v = g.op("Reshape").input(v).input(g.constant(std::vector<int64_t>{0, 0, 2, 8}));
    return ValueId(g.op("Transpose").input(v).attribute("perm", std::move(order)));
  };
  const ValueId q = heads(2, {0, 2, 1, 3}), k = heads(3, {0, 2, 3, 1}), v = heads(4, {0, 2, 1, 3});
  ValueId scores =
      g.op("Mul").input(ValueId(g.op("MatMul").input(q).input(k))).input(g.constant(0.35f));
  scores = g.op("Softmax").input(scores).attribute("axis", -1);
  ValueId y = g.op("MatMul").input(scores).input(v);
  y = g.op("Transpose").input(y).attribute("perm", std::vector<int64_t>{0, 2, 1, 3});
  y = g.op("Reshape").input(y).input(g.constant(std::vector<int64_t>{0, 0, 16}));
  y = g.op("Add").input(y).input(x);
  const ValueId scale = g.add_constant(varied({16}, 6)), bias = g.add_constant(varied({16}, 7));
  return session_of(std::move(g),
                    {g.op("LayerNormalization").input(y).input(scale).input(bias).output()});
}

// x[1, seq, 16] with a table of 40 positions added as far as it goes, and its mean taken.
Session positions() {
  Graph g;
  const ValueId x = add_input(g, "x", {1, symbol("seq"), 16});
  const ValueId length = g.op("Shape").input(x).attribute("start", 1).attribute("end", 2);
  const ValueId table = g.add_constant(varied({1, 40, 16}, 9));
  const ValueId part = g.op("Slice")
                           .input(table)
                           .input(g.constant(std::vector<int64_t>{0}))
                           .input(length)
                           .input(g.constant(std::vector<int64_t>{1}));
  const ValueId sum = g.op("Add").input(x).input(part);
  const ValueId mean = g.op("ReduceMean")
                           .input(sum)
                           .input(g.constant(std::vector<int64_t>{2}))
                           .attribute("keepdims", 1);
  return session_of(std::move(g), {g.op("Sub").input(sum).input(mean).output()});
}

struct Case {
  const char* name;
  Session session;
  std::vector<Dims> inputs;  // shapes that are run in turns
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back({"conv, fixed", convolutional(2, 16), {{2, 3, 16, 16}}});
  all.push_back({"conv, any batch and size",
                 convolutional(symbol("n"), symbol("size")),
                 {{1, 3, 16, 16}, {3, 3, 20, 20}}});
  all.push_back({"transformer, fixed", transformer(12), {{1, 12, 16}}});
  all.push_back(
      {"transformer, any length", transformer(symbol("seq")), {{1, 12, 16}, {1, 31, 16}}});
  all.push_back({"positions, any length", positions(), {{1, 7, 16}, {1, 40, 16}, {1, 1, 16}}});
  return all;
}

TEST(Session, AllocatesNothingAfterTheFirstRunOfAShape) {
  for (const Case& c : cases()) {
    std::vector<std::vector<Value>> inputs;
    std::vector<std::vector<Tensor>> outputs;
    for (const Dims& dims : c.inputs) {
      auto bound = c.session.bind(std::vector{dims});
      ASSERT_TRUE(bound.has_value() && bound->outputs[0]) << c.name;
      inputs.push_back({Value(varied(dims))});
      outputs.push_back({*Tensor::allocate(DType::f32, *bound->outputs[0])});
      ASSERT_TRUE(c.session.run_into(inputs.back(), outputs.back()).has_value()) << c.name;
    }
    const int64_t before = allocations();
    for (int turn = 0; turn < 6; ++turn)
      for (size_t i = 0; i < inputs.size(); ++i)
        ASSERT_TRUE(c.session.run_into(inputs[i], outputs[i]).has_value());
    EXPECT_EQ(allocations() - before, 0) << c.name;
    EXPECT_EQ(c.session.bindings_made(), c.inputs.size()) << c.name;
  }
}

TEST(Session, SymbolicShapesGiveTheBitsOfFixedOnes) {
  const Session any = convolutional(symbol("n"), symbol("size"));
  for (int64_t n : {1, 2, 5}) {
    const std::vector inputs{Value(varied({n, 3, 14, 14}))};
    auto symbolic = any.run(inputs), fixed = convolutional(n, 14).run(inputs);
    ASSERT_TRUE(symbolic && fixed);
    EXPECT_TRUE(same_bits((*symbolic)[0].tensor, (*fixed)[0].tensor));
  }
}

TEST(Session, TheSameBitsForEveryNumberOfThreads) {
  for (Case& c : cases()) {
    for (const Dims& dims : c.inputs) {
      const std::vector inputs{Value(varied(dims))};
      std::vector<Value> reference;
      for (unsigned threads : {1u, 2u, 3u, 5u}) {
        ThreadPool pool(threads);
        c.session.use(pool);
        auto outputs = c.session.run(inputs);
        ASSERT_TRUE(outputs.has_value()) << c.name;
        if (reference.empty()) reference = *outputs;
        EXPECT_TRUE(same_bits((*outputs)[0].tensor, reference[0].tensor)) << c.name << threads;
      }
    }
  }
}

TEST(Session, RunsManyShapesFromManyThreads) {
  const Session session = transformer(symbol("seq"));
  std::vector<Value> expected;
  for (int64_t seq = 1; seq <= 8; ++seq)
    expected.push_back((*session.run(std::vector{Value(varied({1, seq, 16}))}))[0]);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 40; ++i) {
        const int64_t seq = (i * 3 + t) % 8 + 1;
        auto outputs = session.run(std::vector{Value(varied({1, seq, 16}))});
        wrong += !outputs || !same_bits((*outputs)[0].tensor, expected[seq - 1].tensor);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, BindsShapesOnce) {
  const Session session = transformer(symbol("seq"));
  auto bound = session.bind(std::vector{Dims{1, 9, 16}});
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->outputs[0], (Dims{1, 9, 16}));
  EXPECT_GT(bound->activation_bytes, 9u * 16 * 4);
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(session.run(std::vector{Value(varied({1, 9, 16}))}).has_value());
  EXPECT_EQ(session.bindings_made(), 1u);
  EXPECT_GT(session.bind(std::vector{Dims{1, 90, 16}})->activation_bytes, bound->activation_bytes);
  EXPECT_EQ(session.bindings_made(), 2u);
  EXPECT_THAT(session.bind(std::vector{Dims{2, 9, 16}}).error().to_string(),
              HasSubstr("input 'x': shape [2, 9, 16] where [1, seq, 16] is expected"));
  EXPECT_FALSE(session.bind({}).has_value());
}

// Nothing of such a tensor is ever read, but its strides would not fit 64 bits.
TEST(Session, RefusesShapesBeyondAnyMemoryEvenWithoutElements) {
  Graph g;
  const ValueId x = add_input(g, "x", {symbol("a"), symbol("b"), symbol("c")});
  const ValueId y = g.op("Transpose").input(x).attribute("perm", std::vector<int64_t>{2, 1, 0});
  const Session session = session_of(std::move(g), {y});
  EXPECT_TRUE(session.run(std::vector{Value(varied({0, 1 << 20, 45}))}).has_value());
  constexpr int64_t kMuch = int64_t{1} << 60;
  Value value(varied({0}));
  value.tensor.dims = {0, kMuch, 45};
  EXPECT_THAT(session.run(std::vector{value}).error().to_string(),
              HasSubstr("input 'x': a tensor of shape [0, 1152921504606846976, 45] is too large"));
  EXPECT_THAT(session.bind(std::vector{Dims{0, kMuch, 45}}).error().to_string(),
              HasSubstr("is too large"));
}

TEST(Session, PlansForDimensionsTheModelLeavesOpen) {
  Graph g;
  const ValueId x = add_input(g, "in-put", {symbol("?"), symbol("?")});
  const ValueId y = g.op("Transpose").input(x).attribute("perm", std::vector<int64_t>{1, 0});
  const Session session = session_of(std::move(g), {g.op("Softmax").input(y).output()});
  EXPECT_EQ(session.inputs()[0].shape->to_string(), "[in_put_0, in_put_1]");
  auto bound = session.bind(std::vector{Dims{3, 5}});
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->outputs[0], (Dims{5, 3}));
  EXPECT_GT(bound->activation_bytes, 0u);
  EXPECT_TRUE(session.run(std::vector{Value(varied({3, 5}))}).has_value());
}

TEST(Session, PointwiseStepsWorkInPlaceAndViewsTakeNoMemory) {
  constexpr uint64_t kBytes = 64 * 1024 * 4;
  for (bool symbolic : {false, true}) {
    Graph g;
    ValueId x = add_input(g, "x", {symbolic ? symbol("n") : Dim(64), 1024});
    ValueId y = g.op("Transpose").input(x).attribute("perm", std::vector<int64_t>{1, 0});
    for (int i = 0; i < 5; ++i) y = g.op("Exp").input(ValueId(g.op("Neg").input(y)));
    y = g.op("Reshape").input(y).input(g.constant(std::vector<int64_t>{2, -1}));
    y = g.op("Unsqueeze").input(y).input(g.constant(std::vector<int64_t>{0}));
    y = g.op("Sqrt").input(y);
    // Read by two: only the last of them may write over it.
    ValueId a = g.op("Abs").input(y), b = g.op("Neg").input(y);
    const Session session = session_of(std::move(g),
                                       {g.op("Transpose")
                                            .input(ValueId(g.op("Add").input(a).input(b)))
                                            .attribute("perm", std::vector<int64_t>{0, 2, 1})
                                            .output()},
                                       false);
    auto bound = session.bind(std::vector{Dims{64, 1024}});
    ASSERT_TRUE(bound.has_value());
    EXPECT_EQ(bound->activation_bytes, 2 * kBytes);
    const Tensor in = varied({64, 1024});
    auto out = session.run(std::vector{Value(in)});
    ASSERT_TRUE(out.has_value());
    for (float v : (*out)[0].tensor.span<float>()) ASSERT_EQ(v, 0.f);
  }
}

// y0 = a view of x; y1 = x twice over; all of it goes through memory that others use too.
TEST(Session, ResultsThatPassOnAnInputAreCopies) {
  Graph g;
  const ValueId x = add_input(g, "x", {4, 6});
  const ValueId flat = g.op("Reshape").input(x).input(g.constant(std::vector<int64_t>{-1}));
  const ValueId twice = g.op("Add").input(x).input(x);
  const Session session = session_of(std::move(g), {flat, twice, x});
  const Tensor in = varied({4, 6});
  auto out = session.run(std::vector{Value(in)});
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ((*out)[0].tensor.dims, (Dims{24}));
  EXPECT_NE((*out)[0].tensor.data, in.data);
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ((*out)[0].tensor.as<float>()[i], in.as<float>()[i]);
    EXPECT_EQ((*out)[1].tensor.as<float>()[i], 2 * in.as<float>()[i]);
    EXPECT_EQ((*out)[2].tensor.as<float>()[i], in.as<float>()[i]);
  }
}

}  // namespace
}  // namespace hologram::compiler
