#include "support/shape.h"

#include <gtest/gtest.h>

namespace hologram {
namespace {

TEST(Shape, ParsesAndPrints) {
  for (const char* text : {"[]", "[0]", "[batch, 3, 224, 224]", "[7]"})
    EXPECT_EQ(Shape::parse(text).value().to_string(), text);
  EXPECT_EQ(Shape::parse("1,3 , n").value().to_string(), "[1, 3, n]");
  for (const char* text : {"[1", "1]", "1,,2", "-1", "3x", "[", "9999999999999999999999"})
    EXPECT_EQ(Shape::parse(text).error().code(), ErrorCode::parse_error) << text;
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape({2, 3, 4}).element_count().value(), 24u);
  EXPECT_EQ(Shape().element_count().value(), 1u);
  EXPECT_EQ(Shape({5, 0}).element_count().value(), 0u);
  EXPECT_EQ(Shape({0, INT64_MAX, INT64_MAX, INT64_MAX}).element_count().value_or(7), 7u);
  EXPECT_EQ(Shape({INT64_MAX, 4}).element_count().error().code(), ErrorCode::out_of_range);
  EXPECT_EQ(Shape({-1}).element_count().error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(Shape::parse("n").value().element_count().error().message(),
            "shape [n] has the unbound symbol 'n'");
}

TEST(Shape, BindsSymbols) {
  const Shape shape = Shape::parse("[batch, seq, 8]").value();
  EXPECT_EQ(shape.bind({{"batch", 2}, {"seq", 5}}).value(), Shape({2, 5, 8}));
  EXPECT_EQ(shape.bind({{"batch", 2}}).error().message(),
            "symbol 'seq' of shape [batch, seq, 8] has no value");
  EXPECT_FALSE(shape.bind({{"batch", -2}, {"seq", 1}}));
}

TEST(Shape, BroadcastsLikeNumpy) {
  EXPECT_EQ(broadcast({2, 3}, {3}).value(), Shape({2, 3}));
  EXPECT_EQ(broadcast({2, 1, 4}, {5, 1}).value(), Shape({2, 5, 4}));
  EXPECT_EQ(broadcast({1}, {0}).value(), Shape({0}));
  EXPECT_EQ(broadcast({}, {2}).value(), Shape({2}));
  EXPECT_EQ(broadcast({2}, {3}).error().code(), ErrorCode::shape_mismatch);
  const Shape n = Shape::parse("[n, 4]").value();
  EXPECT_EQ(broadcast(n, {1, 4}).value(), n);
  EXPECT_EQ(broadcast(n, n).value(), n);
  EXPECT_FALSE(broadcast(n, {3, 4})) << "whether n is 3 is not known";
}

}  // namespace
}  // namespace hologram
