#include <gmock/gmock.h>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Call constant_of_shape(std::vector<int64_t> shape, const Tensor& value) {
  Call call{"ConstantOfShape", {vector(shape)}};
  call.attributes.set("value", value);
  return call;
}

TEST(ConstantOfShape, FillsWithEveryType) {
  EXPECT_THAT(elements<float>(evaluate({"ConstantOfShape", {vector<int64_t>({2})}})),
              ElementsAre(0, 0));
  EXPECT_THAT(elements<int64_t>(evaluate(constant_of_shape({3}, vector<int64_t>({-7})))),
              ElementsAre(-7, -7, -7));
  EXPECT_THAT(bytes(evaluate(constant_of_shape({3}, bits(DType::i4, {1}, {0x9})))),
              ElementsAre(0x99, 0x09));
  EXPECT_THAT(bytes(evaluate(constant_of_shape({5}, bits(DType::u2, {1}, {0x2})))),
              ElementsAre(0b10101010, 0b10));
  EXPECT_THAT(elements<std::string>(evaluate(constant_of_shape({2}, strings({1}, {"a"})))),
              ElementsAre("a", "a"));
  EXPECT_EQ(evaluate(constant_of_shape({0, 4}, scalar(1.0f))).dims, Dims({0, 4}));
  EXPECT_EQ(evaluate(constant_of_shape({}, scalar(1.0f))).dims, Dims());
}

TEST(ConstantOfShape, Refuses) {
  EXPECT_THAT(refusal(constant_of_shape({-1}, scalar(1.0f))), HasSubstr("dimension -1"));
  EXPECT_THAT(refusal(constant_of_shape({2}, vector<float>({1, 2}))), HasSubstr("one element"));
  EXPECT_THAT(refusal(constant_of_shape({int64_t{1} << 40, int64_t{1} << 40}, scalar(1.0f))),
              ::testing::Not(""));
}

template <typename T>
Call range(T start, T limit, T delta) {
  return {"Range", {scalar(start), scalar(limit), scalar(delta)}};
}

TEST(Range, CountsUpAndDownInEveryType) {
  EXPECT_THAT(elements<int16_t>(evaluate(range<int16_t>(10, 4, -2))), ElementsAre(10, 8, 6));
  EXPECT_THAT(elements<double>(evaluate(range<double>(1, 5, 2))), ElementsAre(1, 3));
  EXPECT_THAT(elements<Half>(evaluate(range(Half(0), Half(1), Half(0.5f)))),
              ElementsAre(Half(0), Half(0.5f)));
  EXPECT_THAT(elements<BFloat16>(evaluate(range(BFloat16(1), BFloat16(-1), BFloat16(-1)))),
              ElementsAre(BFloat16(1), BFloat16(0)));
  EXPECT_EQ(evaluate(range<int64_t>(3, 3, 1)).count(), 0);
  EXPECT_EQ(evaluate(range<float>(3, 0, 1)).count(), 0);
}

TEST(Range, SurvivesTheEndsOfItsType) {
  const int32_t low = std::numeric_limits<int32_t>::min(),
                high = std::numeric_limits<int32_t>::max();
  EXPECT_THAT(elements<int32_t>(evaluate(range<int32_t>(low, high, high))),
              ElementsAre(low, -1, high - 1));
  EXPECT_THAT(elements<int32_t>(evaluate(range<int32_t>(high, low, low))), ElementsAre(high, -1));
}

TEST(Range, Refuses) {
  EXPECT_THAT(refusal(range<int32_t>(0, 1, 0)), HasSubstr("delta 0"));
  EXPECT_THAT(refusal(range<float>(0, INFINITY, 1)), HasSubstr("a range from 0 to inf"));
  EXPECT_THAT(refusal(range<uint8_t>(0, 1, 1)), HasSubstr("supported: i16, i32, i64"));
  EXPECT_THAT(refusal({"Range", {vector<float>({1, 2}), scalar(1.0f), scalar(1.0f)}}),
              HasSubstr("one element"));
}

TEST(EyeLike, PutsOnesOnADiagonal) {
  Call call{"EyeLike", {tensor<int32_t>({2, 3}, {9, 9, 9, 9, 9, 9})}};
  EXPECT_THAT(elements<int32_t>(evaluate(call)), ElementsAre(1, 0, 0, 0, 1, 0));
  call.attributes.set("k", int64_t{-1});
  call.attributes.set("dtype", static_cast<int64_t>(DType::f16));
  EXPECT_THAT(elements<Half>(evaluate(call)),
              ElementsAre(Half(0), Half(0), Half(0), Half(1), Half(0), Half(0)));
  for (int64_t k : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    call.attributes.set("k", k);
    EXPECT_THAT(elements<Half>(evaluate(call)), ::testing::Each(Half(0)));
  }
  call.attributes.set("dtype", static_cast<int64_t>(DType::string));
  EXPECT_THAT(refusal(call), HasSubstr("a result of type string"));
  EXPECT_THAT(refusal({"EyeLike", {vector<float>({1})}}), HasSubstr("a matrix expected"));
}

}  // namespace
}  // namespace hologram::graph::testing
