#include "runtime/session/turns.h"

#include <gtest/gtest.h>

#include "compiler/test_session.h"

namespace hologram::compiler {
namespace {

using Inputs = std::vector<std::vector<kernels::Value>>;

// `products` of n x n, one after the other.
runtime::Session products_of(int64_t n, size_t products) {
  graph::Graph g;
  graph::ValueId x = add_input(g, "x", {n, n});
  for (size_t i = 0; i < products; ++i) x = g.op("MatMul").input(x).input(x);
  return session_of(std::move(g), {x});
}

std::vector<kernels::Value> square(int64_t n) {
  std::vector<kernels::Value> inputs;
  inputs.emplace_back(varied({n, n}));
  return inputs;
}

double sum_of(const std::map<std::string, double>& times) {
  double sum = 0;
  for (const auto& [name, time] : times) sum += time;
  return sum;
}

TEST(Turns, MeasuresEveryStepOfEverySession) {
  std::vector<runtime::Session> sessions;
  sessions.push_back(products_of(8, 1));
  sessions.push_back(products_of(400, 3));
  const Inputs inputs = {square(8), square(400)};
  const auto times = runtime::times_in_turns(sessions, inputs);
  ASSERT_TRUE(times.has_value()) << times.error().to_string();
  ASSERT_EQ(times->size(), 2u);
  EXPECT_GT(sum_of((*times)[0]), 0);
  EXPECT_GT(sum_of((*times)[1]), sum_of((*times)[0]));  // by a factor of thousands
}

TEST(Turns, FailsWithWhatIsRun) {
  std::vector<runtime::Session> sessions;
  sessions.push_back(products_of(8, 1));
  const Inputs inputs = {square(9)};
  EXPECT_FALSE(runtime::times_in_turns(sessions, inputs).has_value());
}

}  // namespace
}  // namespace hologram::compiler
