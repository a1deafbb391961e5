#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <random>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Call with_axis(Call call, int64_t axis) {
  call.attributes.set("axis", axis);
  return call;
}
Call reduced(Call call, const char* reduction) {
  call.attributes.set("reduction", std::string(reduction));
  return call;
}
Tensor floats(const Dims& dims) {
  std::vector<float> values(dims.count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return tensor<float>(dims, values);
}

TEST(Gather, TakesRowsOfEveryType) {
  const Tensor indices = vector<int32_t>({-1, 0});
  EXPECT_THAT(elements<float>(evaluate(with_axis({"Gather", {floats({2, 3}), indices}}, 1))),
              ElementsAre(2, 0, 5, 3));
  EXPECT_THAT(elements<std::string>(evaluate({"Gather", {strings({3}, {"a", "b", "c"}), indices}})),
              ElementsAre("c", "a"));
  EXPECT_THAT(bytes(evaluate({"Gather", {bits(DType::u4, {3}, {0x21, 0x03}), indices}})),
              ElementsAre(0x13));
  EXPECT_EQ(evaluate({"Gather", {floats({2, 3}), scalar<int64_t>(1)}}).dims, Dims({3}));
  EXPECT_EQ(evaluate({"Gather", {floats({2, 0}), vector<int64_t>({1, 1, 1})}}).dims, Dims({3, 0}));
}

TEST(Gather, Refuses) {
  EXPECT_THAT(refusal({"Gather", {floats({2}), vector<int64_t>({2})}}),
              HasSubstr("index 2 of an axis of 2"));
  EXPECT_THAT(refusal({"Gather", {floats({2}), vector<int64_t>({-3})}}),
              HasSubstr("index -3 of an axis of 2"));
  EXPECT_THAT(refusal(with_axis({"Gather", {floats({2}), vector<int64_t>({0})}}, 1)),
              HasSubstr("axis 1"));
  EXPECT_THAT(refusal({"Gather", {floats({2}), vector<uint8_t>({0})}}),
              HasSubstr("supported: i32, i64"));
}

// Element by element, by coordinates.
TEST(GatherElements, AgreesWithItsDefinition) {
  std::mt19937 random(3);
  const Dims dims{3, 4, 5}, index_dims{2, 4, 3};
  const Tensor in = floats(dims);
  const Dims strides = dims.strides();
  for (size_t axis = 0; axis < 3; ++axis) {
    Dims own = index_dims;
    own[axis] = 6;  // may be longer than the data along the axis
    const Dims own_strides = own.strides();
    std::vector<int64_t> indices(own.count());
    for (auto& i : indices)
      i = std::uniform_int_distribution<int64_t>(-dims[axis], dims[axis] - 1)(random);
    std::vector<float> expected;
    for (int64_t i = 0; i < own.count(); ++i) {
      int64_t offset = 0;
      for (size_t k = 0; k < 3; ++k) {
        int64_t coordinate = i / own_strides[k] % own[k];
        if (k == axis) coordinate = (indices[i] + dims[k]) % dims[k];
        offset += coordinate * strides[k];
      }
      expected.push_back(static_cast<float>(offset));
    }
    const Tensor out = evaluate(with_axis({"GatherElements", {in, tensor<int64_t>(own, indices)}},
                                          static_cast<int64_t>(axis)));
    EXPECT_EQ(elements<float>(out), expected);
    // ScatterElements puts what GatherElements took back where it was.
    const Tensor back = evaluate(with_axis(
        {"ScatterElements", {in, tensor<int64_t>(own, indices), out}}, static_cast<int64_t>(axis)));
    EXPECT_EQ(elements<float>(back), elements<float>(in));
  }
  EXPECT_THAT(refusal({"GatherElements", {in, tensor<int64_t>({1, 5, 1}, {0, 0, 0, 0, 0})}}),
              HasSubstr("larger than data"));
  EXPECT_THAT(refusal({"GatherElements", {in, vector<int64_t>({0})}}), HasSubstr("another rank"));
  EXPECT_EQ(evaluate({"GatherElements", {in, tensor<int64_t>({0, 1, 1}, {})}}).count(), 0);
}

TEST(GatherND, TakesElementsSlicesAndBatches) {
  const Tensor in = floats({2, 2, 2});
  EXPECT_THAT(
      elements<float>(evaluate({"GatherND", {in, tensor<int64_t>({2, 3}, {0, 1, -1, 1, 0, 0})}})),
      ElementsAre(3, 4));
  EXPECT_THAT(elements<float>(evaluate({"GatherND", {in, tensor<int64_t>({1, 1}, {1})}})),
              ElementsAre(4, 5, 6, 7));
  Call batched{"GatherND", {in, tensor<int64_t>({2, 1}, {1, 0})}};
  batched.attributes.set("batch_dims", int64_t{1});
  EXPECT_THAT(elements<float>(evaluate(batched)), ElementsAre(2, 3, 4, 5));
  // No coordinates at all: the whole, once for every tuple.
  EXPECT_EQ(evaluate({"GatherND", {in, tensor<int64_t>({3, 0}, {})}}).dims, Dims({3, 2, 2, 2}));
  batched.attributes.set("batch_dims", int64_t{2});
  EXPECT_THAT(refusal(batched), HasSubstr("batch_dims 2"));
  EXPECT_THAT(refusal({"GatherND", {in, tensor<int64_t>({1, 4}, {0, 0, 0, 0})}}),
              HasSubstr("4 coordinates"));
  EXPECT_THAT(refusal({"GatherND", {in, tensor<int64_t>({1, 1}, {2})}}), HasSubstr("index 2"));
}

template <typename T>
std::vector<T> scatter(const char* reduction, std::vector<T> data, std::vector<T> updates) {
  return elements<T>(evaluate(
      reduced({"ScatterElements",
               {vector(data), vector(std::vector<int64_t>(updates.size(), -1)), vector(updates)}},
              reduction)));
}

TEST(Scatter, ReducesEveryType) {
  EXPECT_THAT(scatter<float>("add", {1, 2}, {3, 4}), ElementsAre(1, 9));
  EXPECT_THAT(scatter<double>("mul", {1, 2}, {3, 4}), ElementsAre(1, 24));
  EXPECT_THAT(scatter<int8_t>("add", {1, 127}, {1}), ElementsAre(1, -128));
  EXPECT_THAT(scatter<uint64_t>("max", {1, 2}, {~uint64_t{0}}), ElementsAre(1, ~uint64_t{0}));
  EXPECT_THAT(scatter<int32_t>("min", {1, 2}, {-5, 7}), ElementsAre(1, -5));
  EXPECT_THAT(scatter<int64_t>("none", {1, 2}, {3, 4}), ElementsAre(1, 4));
  EXPECT_EQ(scatter<Half>("add", {Half(1), Half(2)}, {Half(0.5f)})[1], Half(2.5f));
  EXPECT_EQ(scatter<BFloat16>("max", {BFloat16(1), BFloat16(2)}, {BFloat16(3)})[1], BFloat16(3));
  EXPECT_TRUE(std::isnan(scatter<float>("max", {1, 2}, {std::nanf(""), 4})[1]));
  Call logic{"ScatterElements",
             {bools({2}, {true, true}), vector<int64_t>({0, 1}), bools({2}, {false, true})}};
  EXPECT_THAT(elements<bool>(evaluate(reduced(logic, "mul"))), ElementsAre(false, true));
  Call complex{"ScatterElements",
               {bits(DType::complex64, {1}, bytes(vector<float>({1, 2}))), vector<int64_t>({0}),
                bits(DType::complex64, {1}, bytes(vector<float>({3, -1})))}};
  EXPECT_EQ(bytes(evaluate(reduced(complex, "mul"))), bytes(vector<float>({5, 5})));
  EXPECT_THAT(refusal(reduced(complex, "max")), HasSubstr("no order"));
  Call texts{"ScatterElements",
             {strings({2}, {"a", "b"}), vector<int64_t>({1}), strings({1}, {"c"})}};
  EXPECT_THAT(elements<std::string>(evaluate(texts)), ElementsAre("a", "c"));
  EXPECT_THAT(refusal(reduced(texts, "add")), HasSubstr("reduction add of type string"));
  EXPECT_THAT(refusal(reduced(texts, "mean")), HasSubstr("supported: none, add, mul, min, max"));
}

TEST(ScatterND, WritesSlicesInOrder) {
  Call call{
      "ScatterND",
      {floats({2, 2}), tensor<int64_t>({2, 1}, {1, -1}), tensor<float>({2, 2}, {9, 8, 7, 6})}};
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(0, 1, 7, 6));
  EXPECT_THAT(elements<float>(evaluate(reduced(call, "add"))), ElementsAre(0, 1, 18, 17));
  call.inputs[2] = tensor<float>({4}, {9, 8, 7, 6});
  EXPECT_THAT(refusal(call), HasSubstr("do not fit"));
  call.inputs = {floats({2, 2}), tensor<int64_t>({1, 3}, {0, 0, 0}), vector<float>({1})};
  EXPECT_THAT(refusal(call), HasSubstr("3 coordinates"));
}

TEST(TensorScatter, WritesAndWraps) {
  Call call{"TensorScatter",
            {floats({1, 3, 1}), tensor<float>({1, 2, 1}, {8, 9}), vector<int64_t>({1})}};
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(0, 8, 9));
  call.inputs[2] = vector<int64_t>({2});
  EXPECT_THAT(refusal(call), HasSubstr("written at 2 of a cache of 3"));
  call.attributes.set("mode", std::string("circular"));
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(9, 1, 8));
  call.inputs[2] = vector<int64_t>({5});
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(9, 1, 8));
  call.inputs[2] = vector<int64_t>({-1});
  EXPECT_THAT(refusal(call), HasSubstr("written at -1"));
}

TEST(OneHot, TakesAnyNumbers) {
  const Tensor values = vector<int32_t>({0, 1});
  EXPECT_THAT(
      elements<int32_t>(evaluate({"OneHot", {vector<float>({1, -1, 5}), scalar(2.0f), values}})),
      ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(elements<int32_t>(evaluate(
                  with_axis({"OneHot", {vector<uint8_t>({1, 0}), scalar<int64_t>(2), values}}, 0))),
              ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(
      elements<std::string>(evaluate(
          {"OneHot", {vector<Half>({Half(1)}), vector<int64_t>({2}), strings({2}, {"-", "+"})}})),
      ElementsAre("-", "+"));
  EXPECT_EQ(evaluate({"OneHot", {vector<int64_t>({0}), scalar<int64_t>(0), values}}).dims,
            Dims({1, 0}));
  EXPECT_THAT(refusal({"OneHot", {vector<int64_t>({0}), scalar<int64_t>(-1), values}}),
              HasSubstr("depth -1"));
  EXPECT_THAT(refusal({"OneHot", {vector<int64_t>({0}), scalar<int64_t>(1), vector<int32_t>({1})}}),
              HasSubstr("two values"));
}

TEST(Compress, TakesShortConditionsAndEveryType) {
  Call call{"Compress", {floats({2, 3}), bools({2}, {false, true})}};
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(1));
  EXPECT_THAT(elements<float>(evaluate(with_axis(call, -1))), ElementsAre(1, 4));
  call.inputs[0] = bits(DType::u2, {3}, {0b111001});
  EXPECT_THAT(bytes(evaluate(call)), ElementsAre(0b10));
  call.inputs[1] = bools({4}, {true, true, true, true});
  EXPECT_THAT(refusal(call), HasSubstr("4 conditions for an axis of 3"));
}

TEST(NonZero, KnowsZeroOfEveryType) {
  auto found = [](const Tensor& in) { return elements<int64_t>(evaluate({"NonZero", {in}})); };
  EXPECT_THAT(found(vector<float>({0, -0.0f, std::nanf(""), 1e-40f})), ElementsAre(2, 3));
  EXPECT_THAT(found(vector<Half>({Half(-0.0f), Half(1)})), ElementsAre(1));
  EXPECT_THAT(found(vector<double>({-0.0, -1})), ElementsAre(1));
  EXPECT_THAT(found(tensor<int8_t>({2, 2}, {0, -128, 3, 0})), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(found(strings({2}, {"", "x"})), ElementsAre(1));
  EXPECT_THAT(found(bits(DType::complex128, {1}, bytes(vector<double>({-0.0, -0.0})))),
              ElementsAre());
  EXPECT_EQ(evaluate({"NonZero", {scalar(1.0f)}}).dims, Dims({1, 1}));
  EXPECT_EQ(evaluate({"NonZero", {tensor<float>({0, 3}, {})}}).dims, Dims({2, 0}));
}

TEST(Trilu, KeepsOneSide) {
  auto sides = [](int64_t k, bool upper) {
    Call call{"Trilu", {floats({2, 3}), scalar(k)}};
    call.inputs[0] = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    call.attributes.set("upper", int64_t{upper});
    return elements<float>(evaluate(call));
  };
  EXPECT_THAT(sides(0, true), ElementsAre(1, 2, 3, 0, 5, 6));
  EXPECT_THAT(sides(1, false), ElementsAre(1, 2, 0, 4, 5, 6));
  const int64_t far = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(sides(far, false), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(sides(far, true), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(sides(std::numeric_limits<int64_t>::min(), true), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(evaluate({"Trilu", {tensor<float>({0, 3}, {})}}).dims, Dims({0, 3}));
  EXPECT_THAT(refusal({"Trilu", {vector<float>({1})}}), HasSubstr("a matrix or more"));
}

TEST(Where, ChoosesEveryType) {
  const Tensor condition = bools({2, 1}, {true, false});
  EXPECT_THAT(elements<std::string>(
                  evaluate({"Where", {condition, strings({2}, {"a", "b"}), strings({}, {"c"})}})),
              ElementsAre("a", "b", "c", "c"));
  EXPECT_THAT(
      bytes(evaluate(
          {"Where", {condition, bits(DType::i4, {1}, {0x7}), bits(DType::i4, {2}, {0xf1})}})),
      ElementsAre(0x77, 0xf1));
  EXPECT_THAT(
      refusal({"Where",
               {bools({3}, {true, true, false}), strings({2}, {"a", "b"}), strings({1}, {"c"})}}),
      HasSubstr("broadcast"));
}

TEST(Equal, ComparesStrings) {
  EXPECT_THAT(
      elements<bool>(evaluate({"Equal", {strings({2, 1}, {"a", "b"}), strings({2}, {"b", "a"})}})),
      ElementsAre(false, true, true, false));
}

template <typename T>
std::vector<T> shift(const char* direction, std::vector<T> x, std::vector<T> by) {
  Call call{"BitShift", {vector(x), vector(by)}};
  call.attributes.set("direction", std::string(direction));
  return elements<T>(evaluate(call));
}

TEST(BitShift, ShiftsEveryBitOut) {
  EXPECT_THAT(shift<uint8_t>("LEFT", {1, 255, 3}, {7, 8, 255}), ElementsAre(128, 0, 0));
  EXPECT_THAT(shift<int64_t>("RIGHT", {-8, -8, 8, -8}, {1, 64, 64, -1}),
              ElementsAre(-4, -1, 0, -1));
  EXPECT_THAT(shift<int16_t>("LEFT", {1, -1, 1}, {15, 1, -3}), ElementsAre(-32768, -2, 0));
  EXPECT_THAT(refusal({"BitShift", {vector<int32_t>({1}), vector<int32_t>({1})}}),
              HasSubstr("supported: LEFT, RIGHT"));
}

}  // namespace
}  // namespace hologram::graph::testing
