// Sequences and optionals at their edges.
#include <gmock/gmock.h>

#include "run_model.h"
#include "tests/error/onnx_bytes.h"

namespace hologram {
namespace {

using namespace hologram::testing;
using kernels::Dims;
using kernels::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Nodes on x and z, floats [2], and a position p; one output y.
Result<std::vector<Value>> run(Names nodes, int64_t position = 0, int type = kFloat) {
  const std::string text =
      model(graph_text({std::move(nodes),
                        {value("x", kFloat, {2}), value("z", kFloat, {2}), value("p", kInt64, {})},
                        {value("y", type, {-99})},
                        {}}));
  return run_model(
      text, {given<float>({2}, {1, 2}), given<float>({2}, {3, 4}), given<int64_t>({}, {position})});
}
std::string message(Names nodes, int64_t position = 0, int type = kFloat) {
  const auto out = run(std::move(nodes), position, type);
  return out ? "ran" : out.error().to_string();
}

const std::string kPair = node({"SequenceConstruct", {"x", "z"}, {"s"}});
const std::string kEmpty = node({"SequenceEmpty", {}, {"s"}});

TEST(Sequences, CountFromBothEnds) {
  for (auto [position, first] : {std::pair{int64_t{0}, 1.0f},
                                 {int64_t{1}, 3.0f},
                                 {int64_t{-1}, 3.0f},
                                 {int64_t{-2}, 1.0f}}) {
    const auto out = run({kPair, node({"SequenceAt", {"s", "p"}, {"y"}})}, position);
    ASSERT_TRUE(out.has_value()) << out.error().to_string();
    EXPECT_EQ(elements<float>((*out)[0])[0], first);
  }
  for (const int64_t position : {2, -3})
    EXPECT_THAT(message({kPair, node({"SequenceAt", {"s", "p"}, {"y"}})}, position),
                HasSubstr("in a sequence of 2"));
}

TEST(Sequences, InsertedBeforeAPlaceOrAtTheEnd) {
  const std::string joined =
      node({"ConcatFromSequence", {"t"}, {"y"}, {attribute("axis", int64_t{0})}});
  auto out = run({kPair, node({"SequenceInsert", {"s", "z", "p"}, {"t"}}), joined}, -2);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(3, 4, 1, 2, 3, 4));
  out = run({kPair, node({"SequenceInsert", {"s", "x"}, {"t"}}), joined});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(1, 2, 3, 4, 1, 2));
  EXPECT_THAT(message({kPair, node({"SequenceInsert", {"s", "x", "p"}, {"t"}}), joined}, 3),
              HasSubstr("position 3 in a sequence of"));
}

TEST(Sequences, OfOneTypeOnly) {
  EXPECT_THAT(message({kPair, node({"SequenceInsert", {"s", "p"}, {"t"}}),
                       node({"SequenceLength", {"t"}, {"y"}})},
                      0, kInt64),
              HasSubstr("input tensor is i64 where another input of the same type is f32"));
  EXPECT_THAT(message({node({"SequenceAt", {"x", "p"}, {"y"}})}),
              HasSubstr("input input_sequence must be a sequence, not a tensor"));
  EXPECT_THAT(message({kPair, node({"Relu", {"s"}, {"y"}})}),
              HasSubstr("must be a tensor, not a sequence"));
  EXPECT_THAT(message({node({"SequenceEmpty", {}, {"s"}, {attribute("dtype", int64_t{17})}}),
                       node({"SequenceLength", {"s"}, {"y"}})},
                      0, kInt64),
              HasSubstr("supported"));
  EXPECT_THAT(message({node({"SequenceEmpty", {}, {"s"}, {attribute("dtype", int64_t{12345})}}),
                       node({"SequenceLength", {"s"}, {"y"}})},
                      0, kInt64),
              HasSubstr("elements of type 12345; supported"));
}

TEST(Sequences, EmptyOnes) {
  const auto out = run({kEmpty, node({"SequenceLength", {"s"}, {"y"}})}, 0, kInt64);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<int64_t>((*out)[0]), ElementsAre(0));
  EXPECT_THAT(message({kEmpty, node({"SequenceErase", {"s"}, {"t"}}),
                       node({"SequenceLength", {"t"}, {"y"}})},
                      0, kInt64),
              HasSubstr("the sequence is empty"));
  EXPECT_THAT(
      message(
          {kEmpty, node({"ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", int64_t{0})}})}),
      HasSubstr("the sequence is empty"));
}

TEST(Sequences, JoinedAlongANewAxis) {
  const auto out =
      run({kPair, node({"ConcatFromSequence",
                        {"s"},
                        {"y"},
                        {attribute("axis", int64_t{-1}), attribute("new_axis", int64_t{1})}})});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_EQ((*out)[0].tensor.dims, Dims({2, 2}));
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(1, 3, 2, 4));
}

TEST(Sequences, MappedOneByOne) {
  const std::string body = graph_text({{node({"Add", {"e", "z"}, {"r"}})},
                                       {value("e", kFloat, {-99})},
                                       {value("r", kFloat, {-99})},
                                       {}});
  const std::string map = node({"SequenceMap", {"s"}, {"t"}, {graph_attribute("body", body)}});
  auto out = run(
      {kPair, map, node({"ConcatFromSequence", {"t"}, {"y"}, {attribute("axis", int64_t{0})}})});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(4, 6, 6, 8));
  out = run({kEmpty, map, node({"SequenceLength", {"t"}, {"y"}})}, 0, kInt64);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<int64_t>((*out)[0]), ElementsAre(0));
}

TEST(Optionals, HaveAnElementOrNot) {
  const std::string full = node({"Optional", {"x"}, {"o"}});
  auto has = [](const Result<std::vector<Value>>& out) {
    EXPECT_TRUE(out.has_value()) << out.error().to_string();
    return out && *(*out)[0].tensor.as<bool>();
  };
  EXPECT_TRUE(has(run({full, node({"OptionalHasElement", {"o"}, {"y"}})}, 0, kBool)));
  EXPECT_TRUE(has(run_model(model(graph_text({{node({"OptionalHasElement", {"x"}, {"y"}})},
                                              {value("x", kFloat, {2})},
                                              {value("y", kBool, {})},
                                              {}}),
                                  {opset("", 18)}),
                            {given<float>({2}, {1, 2})})));
  EXPECT_FALSE(has(run_model(model(graph_text({{node({"OptionalHasElement", {}, {"y"}})},
                                               {value("x", kFloat, {2})},
                                               {value("y", kBool, {})},
                                               {}}),
                                   {opset("", 18)}),
                             {given<float>({2}, {1, 2})})));
  const auto out = run({full, node({"OptionalGetElement", {"o"}, {"y"}})});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<float>((*out)[0]), ElementsAre(1, 2));
  EXPECT_THAT(message({node({"Optional", {}, {"o"}}), node({"OptionalHasElement", {"o"}, {"y"}})},
                      0, kBool),
              HasSubstr("neither an input nor the attribute 'type'"));
  EXPECT_THAT(
      message({full, node({"Optional", {"o"}, {"q"}}), node({"OptionalHasElement", {"q"}, {"y"}})},
              0, kBool),
      HasSubstr("an optional of optional(f32"));
}

}  // namespace
}  // namespace hologram
