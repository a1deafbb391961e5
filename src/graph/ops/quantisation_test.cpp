#include <gmock/gmock.h>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attributes with(std::string name, int64_t value) {
  Attributes a;
  a.set(std::move(name), value);
  return a;
}

TEST(QuantizeLinear, RoundsToEvenAndStopsAtTheLimits) {
  const Tensor x = vector<float>({-1000, -2.5f, -1.5f, 0.5f, 1.5f, 1000});
  EXPECT_THAT(elements<uint8_t>(evaluate({"QuantizeLinear", {x, scalar(1.f)}})),
              ElementsAre(0, 0, 0, 0, 2, 255));
  EXPECT_THAT(elements<int8_t>(evaluate({"QuantizeLinear", {x, scalar(1.f), scalar(int8_t{1})}})),
              ElementsAre(-128, -1, -1, 1, 3, 127));
}

TEST(QuantizeLinear, TakesTheTypeFromTheAttribute) {
  const Tensor x = vector<float>({-40000, 7, 40000});
  EXPECT_THAT(elements<int16_t>(evaluate({"QuantizeLinear",
                                          {x, scalar(1.f)},
                                          with("output_dtype", static_cast<int64_t>(DType::i16))})),
              ElementsAre(-32768, 7, 32767));
}

TEST(DequantizeLinear, ScalesABlock) {
  const Tensor x = tensor<int8_t>({1, 5}, {1, 2, 3, 4, 5});
  Attributes a = with("axis", 1);
  a.set("block_size", int64_t{2});
  const Tensor scale = tensor<float>({1, 3}, {1, 10, 100});
  EXPECT_THAT(elements<float>(evaluate({"DequantizeLinear", {x, scale}, a})),
              ElementsAre(1, 2, 30, 40, 500));
  EXPECT_THAT(refusal({"DequantizeLinear", {x, tensor<float>({1, 2}, {1, 2})}, a}),
              HasSubstr("blocks of 2"));
}

TEST(DynamicQuantizeLinear, OfZerosIsZero) {
  EXPECT_THAT(
      elements<uint8_t>(evaluate({"DynamicQuantizeLinear", {vector<float>({0, 0})}, {}, 3})),
      ElementsAre(0, 0));
}

TEST(MatMulInteger, SubtractsAZeroPointARowAndAColumn) {
  const Tensor a = tensor<uint8_t>({2, 2}, {1, 2, 3, 4}), b = tensor<int8_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(elements<int32_t>(evaluate(
                  {"MatMulInteger", {a, b, vector<uint8_t>({1, 2}), vector<int8_t>({0, 1})}})),
              ElementsAre(3, 3, 7, 7));
  EXPECT_THAT(refusal({"MatMulInteger", {a, b, vector<uint8_t>({1, 2, 3})}}),
              HasSubstr("zero point"));
}

TEST(Einsum, ContractsThreeOperandsAndBroadcasts) {
  Attributes a;
  a.set("equation", std::string("ij,jk,k->i"));
  const Tensor m = tensor<int32_t>({2, 2}, {1, 2, 3, 4}), v = vector<int32_t>({1, 1});
  EXPECT_THAT(elements<int32_t>(evaluate({"Einsum", {m, m, v}, a})), ElementsAre(17, 37));
  a.set("equation", std::string("...i,...i->..."));
  EXPECT_THAT(elements<int32_t>(evaluate({"Einsum", {m, v}, a})), ElementsAre(3, 7));
  a.set("equation", std::string("ii"));
  EXPECT_THAT(elements<int32_t>(evaluate({"Einsum", {m}, a})), ElementsAre(5));
  a.set("equation", std::string("ij->ik"));
  EXPECT_THAT(refusal({"Einsum", {m}, a}), HasSubstr("'k'"));
}

}  // namespace
}  // namespace hologram::graph::testing
