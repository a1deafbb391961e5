// run_into: results in the caller's memory; and what is left after a run that fails.
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

// y0 = |transpose(x)| under another shape, y1 = table[index], made in this order.
Session two_results(bool symbolic) {
  Graph g;
  const ValueId x = add_input(g, "x", {symbolic ? symbol("n") : Dim(8), 4});
  const ValueId index = add_input(g, "index", {1}, DType::i64);
  ValueId y = g.op("Transpose").input(x).attribute("perm", std::vector<int64_t>{1, 0});
  y = g.op("Abs").input(y);
  y = g.op("Reshape").input(y).input(g.constant(std::vector<int64_t>{2, -1}));
  const ValueId table = g.add_constant(tensor<float>({3}, {10, 20, 30}));
  return session_of(std::move(g), {y, g.op("Gather").input(table).input(index).output()});
}

std::vector<Value> inputs(const Tensor& x, int64_t index) {
  return {Value(x), Value(tensor<int64_t>({1}, {index}))};
}

void expect_first(const Tensor& y, const Tensor& x) {
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_EQ(y.as<float>()[i], std::abs(x.as<float>()[i % 8 * 4 + i / 8])) << i;
}

TEST(RunInto, TheStepThatMakesAResultWritesItToItsPlace) {
  for (bool symbolic : {false, true}) {
    const Session session = two_results(symbolic);
    const Tensor x = varied({8, 4});
    const std::vector results{*Tensor::allocate(DType::f32, {2, 16}),
                              *Tensor::allocate(DType::f32, {1})};
    ASSERT_TRUE(session.run_into(inputs(x, 2), results).has_value());
    expect_first(results[0], x);
    EXPECT_EQ(*results[1].as<float>(), 30.f);
    // The second step fails: the first has written by then, and nobody was there to copy.
    std::fill_n(results[0].as<float>(), 32, 0.f);
    auto status = session.run_into(inputs(x, 3), results);
    ASSERT_FALSE(status.has_value());
    EXPECT_THAT(status.error().to_string(), HasSubstr("(Gather)"));
    expect_first(results[0], x);
  }
}

TEST(RunInto, CopiesWhereMemoryCannotBeWrittenAtOnce) {
  const Session session = two_results(false);
  const Tensor x = varied({8, 4});
  const Tensor memory = *Tensor::allocate(DType::f32, {64});
  // Not aligned.
  std::vector<Tensor> results{memory, *Tensor::allocate(DType::f32, {1})};
  results[0].dims = {2, 16};
  results[0].data += 4;
  ASSERT_TRUE(session.run_into(inputs(x, 0), results).has_value());
  expect_first(results[0], x);
  // Over the input: what is still to be read must not be written.
  Tensor over = *x.clone();
  results[0] = over;
  results[0].dims = {2, 16};
  ASSERT_TRUE(session.run_into(inputs(over, 0), results).has_value());
  expect_first(results[0], x);
}

TEST(RunInto, RefusesInputsThatLieAskew) {
  const Session session = two_results(false);
  const Tensor memory = *Tensor::allocate(DType::f32, {33});
  Tensor x = memory;
  x.dims = {8, 4};
  x.data += 2;
  const auto results = session.run(inputs(x, 0));
  ASSERT_FALSE(results.has_value());
  EXPECT_THAT(results.error().to_string(), HasSubstr("input 'x'"));
  EXPECT_THAT(results.error().to_string(), HasSubstr("multiple of their size"));
}

TEST(RunInto, RefusesBuffersThatDoNotFit) {
  const Session session = two_results(true);
  const Tensor x = varied({8, 4});
  std::vector results{*Tensor::allocate(DType::f32, {2, 15}), *Tensor::allocate(DType::f32, {1})};
  auto status = session.run_into(inputs(x, 0), results);
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().to_string(),
              HasSubstr("output 'y0' is f32[2, 16]; the buffer is f32[2, 15]"));
  results[0] = *Tensor::allocate(DType::f32, {32});  // as large, of another shape
  EXPECT_FALSE(session.run_into(inputs(x, 0), results).has_value());
  results[0] = *Tensor::allocate(DType::i32, {2, 16});
  EXPECT_FALSE(session.run_into(inputs(x, 0), results).has_value());
  EXPECT_FALSE(session.run_into(inputs(x, 0), std::span(results).first(1)).has_value());
}

TEST(RunInto, AFailedRunLeavesNothingBehind) {
  const Session session = two_results(true);
  Tensor x = varied({8, 4});
  const std::vector results{*Tensor::allocate(DType::f32, {2, 16}),
                            *Tensor::allocate(DType::f32, {1})};
  const std::vector<Value> good = inputs(x, 1), bad = inputs(x, -9);
  ASSERT_TRUE(session.run_into(good, results).has_value());
  const long owners = x.owner.use_count();
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(session.run_into(bad, results).has_value());
    EXPECT_EQ(x.owner.use_count(), owners);
    // The memory of the failed run serves this one.
    const int64_t before = allocations();
    ASSERT_TRUE(session.run_into(good, results).has_value());
    EXPECT_EQ(allocations(), before);
    EXPECT_EQ(*results[1].as<float>(), 20.f);
  }
}

}  // namespace
}  // namespace hologram::compiler
