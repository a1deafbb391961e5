// Loop and Scan at their edges.
#include <gmock/gmock.h>

#include <set>

#include "run_model.h"
#include "tests/error/onnx_bytes.h"

namespace hologram {
namespace {

using namespace hologram::testing;
using kernels::Dims;
using kernels::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The state doubles; each iteration also gives its counter times the outer value z.
std::string doubling(Names loop_inputs) {
  const std::string body =
      graph_text({{node({"Add", {"s", "s"}, {"t"}}),
                   node({"Cast", {"i"}, {"f"}, {attribute("to", int64_t{1})}}),
                   node({"Mul", {"f", "z"}, {"out"}}), node({"Identity", {"c"}, {"go"}})},
                  {value("i", kInt64, {}), value("c", kBool, {}), value("s", kFloat, {-99})},
                  {value("go", kBool, {}), value("t", kFloat, {-99}), value("out", kFloat, {1})},
                  {}});
  return model(graph_text(
      {{node({"Loop", std::move(loop_inputs), {"y", "all"}, {graph_attribute("body", body)}})},
       {value("m", kInt64, {}), value("start", kBool, {}), value("x", kFloat, {2}),
        value("z", kFloat, {1})},
       {value("y", kFloat, {2}), value("all", kFloat, {-99})},
       {}}));
}
std::vector<Value> inputs(int64_t trips, bool start) {
  return {given<int64_t>({}, {trips}), flag(start), given<float>({2}, {1, 2}),
          given<float>({1}, {10})};
}

TEST(Loop, RunsAsOftenAsItSays) {
  const auto out = run_model(doubling({"m", "start", "x"}), inputs(3, true));
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(8, 16));
  EXPECT_EQ((*out)[1].tensor.dims, Dims({3, 1}));
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(0, 10, 20));
}

TEST(Loop, EveryTurnDrawsOtherNumbers) {
  const std::string body =
      graph_text({{node({"RandomUniformLike", {"s"}, {"r"}}), node({"Identity", {"c"}, {"go"}}),
                   node({"Identity", {"s"}, {"t"}})},
                  {value("i", kInt64, {}), value("c", kBool, {}), value("s", kFloat, {2})},
                  {value("go", kBool, {}), value("t", kFloat, {2}), value("r", kFloat, {2})},
                  {}});
  const std::string bytes = model(
      graph_text({{node({"Loop", {"m", "", "x"}, {"y", "all"}, {graph_attribute("body", body)}})},
                  {value("m", kInt64, {}), value("x", kFloat, {2})},
                  {value("y", kFloat, {2}), value("all", kFloat, {-99})},
                  {}}));
  const std::vector<Value> given_inputs = {given<int64_t>({}, {50}), given<float>({2}, {1, 2})};
  const auto out = run_model(bytes, given_inputs), again = run_model(bytes, given_inputs);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  const auto drawn = elements<float>((*out)[1]);
  ASSERT_EQ(drawn.size(), 100u);
  EXPECT_EQ(std::set<float>(drawn.begin(), drawn.end()).size(), 100u);
  EXPECT_EQ(drawn, elements<float>((*again)[1]));  // the same in every run
}

TEST(Loop, MayNotRunAtAll) {
  for (auto [trips, start] :
       {std::pair{int64_t{0}, true}, {int64_t{-5}, true}, {int64_t{7}, false}}) {
    const auto out = run_model(doubling({"m", "start", "x"}), inputs(trips, start));
    ASSERT_TRUE(out.has_value()) << out.error().to_string();
    EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(1, 2));
    EXPECT_EQ((*out)[1].tensor.dims, Dims({0, 1}));
  }
}

TEST(Loop, NeedsNoConditionOrNoLimit) {
  const auto counted = run_model(doubling({"m", "", "x"}), inputs(2, false));
  ASSERT_TRUE(counted.has_value()) << counted.error().to_string();
  EXPECT_THAT(elements<float>((*counted)[0]), ElementsAre(4, 8));
  const auto stopped = run_model(doubling({"", "start", "x"}), inputs(2, false));
  ASSERT_TRUE(stopped.has_value()) << stopped.error().to_string();
  EXPECT_THAT(elements<float>((*stopped)[0]), ElementsAre(1, 2));
}

// The state grows by one element an iteration, until it has four.
TEST(Loop, StatesMayGrow) {
  const std::string body =
      graph_text({{node({"Concat", {"s", "z"}, {"t"}, {attribute("axis", int64_t{0})}}),
                   node({"Size", {"t"}, {"n"}}), node({"Less", {"n", "four"}, {"go"}})},
                  {value("i", kInt64, {}), value("c", kBool, {}), value("s", kFloat, {-99})},
                  {value("go", kBool, {}), value("t", kFloat, {-99})},
                  {weights("four", kInt64, {}, std::string("\4\0\0\0\0\0\0\0", 8))}});
  const std::string text =
      model(graph_text({{node({"Loop", {"", "", "x"}, {"y"}, {graph_attribute("body", body)}})},
                        {value("x", kFloat, {1}), value("z", kFloat, {1})},
                        {value("y", kFloat, {-99})},
                        {}}));
  const auto out = run_model(text, {given<float>({1}, {1}), given<float>({1}, {7})});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(1, 7, 7, 7));
}

TEST(Loop, RefusesWhatDoesNotFit) {
  // A counter of several numbers.
  std::string several = doubling({"m", "start", "x"});
  auto wrong = inputs(1, true);
  wrong[0] = given<int64_t>({2}, {1, 2});
  auto out = run_model(several, wrong);
  ASSERT_FALSE(out.has_value());
  EXPECT_EQ(out.error().code(), ErrorCode::shape_mismatch);
  // A state whose type changes.
  const std::string body =
      graph_text({{node({"Shape", {"s"}, {"t"}}), node({"Identity", {"c"}, {"go"}})},
                  {value("i", kInt64, {}), value("c", kBool, {}), value("s", kFloat, {-99})},
                  {value("go", kBool, {}), value("t", kInt64, {-99})},
                  {}});
  const std::string text =
      model(graph_text({{node({"Loop", {"m", "", "x"}, {"y"}, {graph_attribute("body", body)}})},
                        {value("m", kInt64, {}), value("x", kFloat, {1})},
                        {value("y", kFloat, {-99})},
                        {}}));
  out = run_model(text, {given<int64_t>({}, {1}), given<float>({1}, {1})});
  ASSERT_FALSE(out.has_value());
  EXPECT_EQ(out.error().code(), ErrorCode::type_mismatch);
  EXPECT_THAT(out.error().to_string(),
              HasSubstr("carried value 0 starts as f32[1] and becomes i64[?]"));
}

// Running sums of the rows of x, along an axis and in a direction.
std::string sums(Names attributes, const std::vector<int64_t>& dims = {-99}) {
  const int64_t columns = 2;
  attributes.push_back(attribute("num_scan_inputs", int64_t{1}));
  attributes.push_back(graph_attribute(
      "body", graph_text({{node({"Add", {"s", "row"}, {"t"}}), node({"Identity", {"t"}, {"out"}})},
                          {value("s", kFloat, {columns}), value("row", kFloat, {columns})},
                          {value("t", kFloat, {columns}), value("out", kFloat, {columns})},
                          {}})));
  return model(graph_text({{node({"Scan", {"start", "x"}, {"last", "all"}, std::move(attributes)})},
                           {value("start", kFloat, {columns}), value("x", kFloat, dims)},
                           {value("last", kFloat, {-99}), value("all", kFloat, {-99})},
                           {}}));
}

TEST(Scan, RunsForwardsAndBackwards) {
  const std::vector<Value> in = {given<float>({2}, {0, 0}),
                                 given<float>({3, 2}, {1, 2, 3, 4, 5, 6})};
  auto out = run_model(sums({}), in);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(9, 12));
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(1, 2, 4, 6, 9, 12));
  out = run_model(sums({attribute("scan_input_directions", std::vector<int64_t>{1}),
                        attribute("scan_output_directions", std::vector<int64_t>{1})}),
                  in);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(9, 12, 8, 10, 5, 6));
}

TEST(Scan, AlongOtherAxes) {
  const auto out = run_model(sums({attribute("scan_input_axes", std::vector<int64_t>{1}),
                                   attribute("scan_output_axes", std::vector<int64_t>{-1})}),
                             {given<float>({2}, {0, 0}), given<float>({2, 3}, {1, 2, 3, 4, 5, 6})});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_EQ((*out)[1].tensor.dims, Dims({2, 3}));
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(1, 3, 6, 4, 9, 15));
}

TEST(Scan, OfNothingGivesTheStart) {
  const auto out =
      run_model(sums({}, {0, 2}), {given<float>({2}, {5, 6}), given<float>({0, 2}, {})});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(5, 6));
  EXPECT_EQ((*out)[1].tensor.dims, Dims({0, 2}));
}

TEST(Scan, RefusesWhatDoesNotFit) {
  const std::vector<Value> in = {given<float>({2}, {0, 0}),
                                 given<float>({3, 2}, {1, 2, 3, 4, 5, 6})};
  auto message = [&](const std::string& text) {
    const auto out = run_model(text, in);
    return out ? std::string("ran") : out.error().to_string();
  };
  EXPECT_THAT(message(sums({attribute("scan_input_directions", std::vector<int64_t>{2})})),
              HasSubstr("scan_input_directions 2; 0 or 1"));
  EXPECT_THAT(message(sums({attribute("scan_input_axes", std::vector<int64_t>{0, 1})})),
              HasSubstr("scan_input_axes has 2 entries; 1 expected"));
  EXPECT_THAT(message(sums({attribute("scan_input_axes", std::vector<int64_t>{5})})),
              HasSubstr("5"));
}

}  // namespace
}  // namespace hologram
