// Compared with ONNX Runtime in tests/peer; here what that has no case of, on small numbers.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "graph/testing/evaluate.h"

namespace hologram::graph {
namespace {

using testing::absent;
using testing::bits;
using testing::Call;
using testing::elements;
using ::testing::ElementsAre;
using testing::evaluate;
using testing::evaluate_all;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::refusal;
using testing::scalar;
using testing::tensor;
using testing::vector;

Call microsoft(std::string op, std::vector<Tensor> inputs, Attributes attributes = {},
               size_t outputs = 1) {
  return {std::move(op), std::move(inputs), std::move(attributes), outputs, "com.microsoft"};
}

Attributes with(std::initializer_list<std::pair<const char*, int64_t>> numbers) {
  Attributes a;
  for (auto [name, value] : numbers) a.set(name, value);
  return a;
}

// Numbers that look random but are the same everywhere.
Tensor wave(const Dims& dims, double step) {
  std::vector<float> values;
  for (int64_t i = 0; i < dims.count(); ++i)
    values.push_back(static_cast<float>(std::sin(step * static_cast<double>(i + 1))));
  return tensor<float>(dims, values);
}

TEST(Microsoft, GelusOfSums) {
  auto exact = [](double x) { return static_cast<float>(0.5 * x * (1 + std::erf(x / M_SQRT2))); };
  const Tensor x = vector<float>({-2, 0.5f, 3}), bias = vector<float>({1, 0.25f, -1});
  EXPECT_THAT(elements<float>(evaluate(microsoft("Gelu", {x}))),
              Pointwise(FloatNear(1e-6f), {exact(-2), exact(0.5), exact(3)}));
  EXPECT_THAT(elements<float>(evaluate(microsoft("BiasGelu", {x, bias}))),
              Pointwise(FloatNear(1e-6f), {exact(-1), exact(0.75), exact(2)}));
  EXPECT_THAT(elements<float>(evaluate(microsoft("FastGelu", {x, bias}))),
              Pointwise(FloatNear(1e-3f), {exact(-1), exact(0.75), exact(2)}));
  EXPECT_THAT(elements<float>(evaluate(microsoft("QuickGelu", {vector<float>({1})}))),
              Pointwise(FloatNear(1e-6f), {1 / (1 + std::exp(-1.702f))}));
}

TEST(Microsoft, FusedMatMulTransposesRowsAndBatches) {
  const Tensor a = tensor<float>({2, 1}, {1, 2}), b = tensor<float>({2, 2}, {1, 2, 3, 4});
  Attributes t = with({{"transA", 1}, {"transB", 1}});
  t.set("alpha", 10.0);
  EXPECT_THAT(elements<float>(evaluate(microsoft("FusedMatMul", {a, b}, t))), ElementsAre(50, 110));
  // Rows come first, then the batch: two products of [1, 1] by [1, 1].
  const Tensor x = tensor<float>({1, 2, 1}, {2, 3}), y = tensor<float>({2, 1, 1}, {5, 7});
  EXPECT_THAT(
      elements<float>(evaluate(microsoft("FusedMatMul", {x, y}, with({{"transBatchA", 1}})))),
      ElementsAre(10, 21));
}

TEST(Microsoft, FusedActivationsAreThoseOfTheStandard) {
  Attributes a;
  a.set("activation", std::string("LeakyRelu"));
  a.set("activation_alpha", 0.5);
  const Tensor one = tensor<float>({1, 1}, {1}), minus = tensor<float>({1, 1}, {-4});
  EXPECT_THAT(elements<float>(evaluate(microsoft("FusedGemm", {one, minus}, a))), ElementsAre(-2));
  a.set("activation", std::string("Maxout"));
  EXPECT_THAT(refusal(microsoft("FusedGemm", {one, minus}, a)),
              HasSubstr("activation 'Maxout' with 1 numbers; supported: Relu"));
}

TEST(Microsoft, BiasSoftmaxIsOverAllAxesFromOne) {
  Attributes a = with({{"axis", 1}, {"is_inner_broadcast", 1}});
  const Tensor x = tensor<float>({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(
      elements<float>(evaluate(microsoft("BiasSoftmax", {x, tensor<float>({1, 1, 2}, {0, 0})}, a))),
      ElementsAre(0.25f, 0.25f, 0.25f, 0.25f));
  EXPECT_THAT(refusal(microsoft("BiasSoftmax", {x, vector<float>({0, 0})}, a)),
              HasSubstr("is_inner_broadcast with a bias of another rank"));
}

TEST(Microsoft, SimplifiedNormsGiveTheirDeviation) {
  Attributes a;
  a.set("epsilon", 0.0);
  auto out = evaluate_all(microsoft(
      "SkipSimplifiedLayerNormalization",
      {tensor<float>({1, 2}, {1, 2}), tensor<float>({1, 2}, {2, 2}), vector<float>({1, 10})}, a,
      4));
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  const float inverse = 1 / std::sqrt(12.5f);  // of (9 + 16) / 2
  EXPECT_THAT(elements<float>((*out)[0]), Pointwise(FloatNear(1e-6f), {3 * inverse, 40 * inverse}));
  EXPECT_THAT(elements<float>((*out)[2]), Pointwise(FloatNear(1e-6f), {inverse}));
  EXPECT_THAT(elements<float>((*out)[3]), ElementsAre(3, 4));
}

TEST(Microsoft, SimplifiedNormsRefuseAxesOutside) {
  Attributes a = with({{"axis", std::numeric_limits<int64_t>::min()}});
  EXPECT_THAT(refusal(microsoft("SimplifiedLayerNormalization",
                                {tensor<float>({1, 2}, {1, 2}), vector<float>({1, 1})}, a, 2)),
              HasSubstr("axis -9223372036854775808"));
}

TEST(Microsoft, BytesWithoutZeroPoints) {
  const Tensor x = bits(DType::i8, {2}, {10, 256 - 20});
  const Tensor half = scalar(0.5f), one = scalar(1.0f);
  EXPECT_THAT(elements<int8_t>(
                  evaluate(microsoft("QLinearAdd", {x, one, absent(), x, half, absent(), half}))),
              ElementsAre(30, -60));
  EXPECT_THAT(elements<int8_t>(evaluate(microsoft("QLinearReduceMean", {x, one, absent(), half},
                                                  [] {
                                                    Attributes a = with({{"keepdims", 0}});
                                                    a.set("axes", std::vector<int64_t>{0});
                                                    return a;
                                                  }()))),
              ElementsAre(-10));
  EXPECT_THAT(
      refusal(microsoft("QLinearConcat", {one, scalar<uint8_t>(0), x}, with({{"axis", 0}}))),
      HasSubstr("3 inputs; a scale, a zero point and some"));
}

TEST(Microsoft, SignedByUnsignedProducts) {
  const Tensor a = bits(DType::i8, {1, 2}, {2, 256 - 3}), b = bits(DType::u8, {2, 1}, {130, 126});
  const Call call = microsoft("MatMulIntegerToFloat",
                              {a, b, scalar(0.5f), scalar(2.0f), absent(), scalar<uint8_t>(128)});
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(10));  // 2*2 + 3*2
}

TEST(Microsoft, PackedInputsAreTheSameAttention) {
  const Tensor packed = wave({1, 3, 2, 3, 4}, 0.7);
  std::vector<float> parts[3];
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t part = 0; part < 3; ++part)
      for (int64_t i = 0; i < 4; ++i)
        parts[part].push_back(packed.as<float>()[(row * 3 + part) * 4 + i]);
  const Attributes heads = with({{"num_heads", 2}});
  const Tensor apart =
      evaluate(microsoft("MultiHeadAttention",
                         {tensor<float>({1, 3, 8}, parts[0]), tensor<float>({1, 3, 8}, parts[1]),
                          tensor<float>({1, 3, 8}, parts[2])},
                         heads));
  EXPECT_THAT(elements<float>(evaluate(microsoft("MultiHeadAttention", {packed}, heads))),
              Pointwise(FloatNear(1e-6f), elements<float>(apart)));
  EXPECT_THAT(refusal(microsoft("MultiHeadAttention", {packed, packed}, heads)),
              HasSubstr("all three, a packed query alone, or a packed key without a value"));
}

TEST(Microsoft, AttentionMasksThatAreNotKnownAreRefused) {
  const Call call = microsoft(
      "Attention",
      {wave({2, 3, 4}, 0.3), wave({4, 12}, 0.5), absent(), tensor<int32_t>({5}, {1, 1, 1, 1, 1})},
      with({{"num_heads", 2}}));
  EXPECT_THAT(refusal(call), HasSubstr("a mask of shape [5]; supported: [batch], [2 * batch]"));
  EXPECT_THAT(refusal(microsoft("Attention", {wave({2, 3, 4}, 0.3), wave({4, 12}, 0.5)},
                                with({{"num_heads", 2}, {"do_rotary", 1}}))),
              HasSubstr("do_rotary=1; supported: 0"));
}

// A prompt of three tokens, or of two and then one more: the last token sees the same.
TEST(Microsoft, GroupQueryAttentionContinues) {
  const Attributes a = with({{"num_heads", 2}, {"kv_num_heads", 1}, {"do_rotary", 1}});
  const Tensor q = wave({1, 3, 8}, 0.9), k = wave({1, 3, 4}, 0.4), v = wave({1, 3, 4}, 1.3);
  const Tensor cos = wave({8, 2}, 0.2), sin = wave({8, 2}, 0.6);
  auto rows = [](const Tensor& t, int64_t first, int64_t count) {
    const int64_t size = t.dims[2];
    const float* at = t.as<float>() + first * size;
    return tensor<float>({1, count, size}, std::vector<float>(at, at + count * size));
  };
  auto run = [&](int64_t first, int64_t count, Tensor past_key, Tensor past_value) {
    const auto total = static_cast<int32_t>(first + count);
    return *evaluate_all(
        microsoft("GroupQueryAttention",
                  {rows(q, first, count), rows(k, first, count), rows(v, first, count), past_key,
                   past_value, vector<int32_t>({total - 1}), scalar<int32_t>(total), cos, sin},
                  a, 3));
  };
  const auto whole = run(0, 3, absent(), absent());
  const auto prompt = run(0, 2, absent(), absent());
  const auto step = run(2, 1, prompt[1], prompt[2]);
  EXPECT_THAT(elements<float>(step[0]),
              Pointwise(FloatNear(1e-6f), elements<float>(rows(whole[0], 2, 1))));
  EXPECT_EQ(elements<float>(step[1]), elements<float>(whole[1]));
  EXPECT_EQ(elements<float>(step[2]), elements<float>(whole[2]));
}

TEST(Microsoft, GroupQueryAttentionRefusesQuantisedCaches) {
  Attributes a = with({{"num_heads", 2}, {"kv_num_heads", 1}});
  a.set("k_quant_type", std::string("PER_TENSOR"));
  EXPECT_THAT(refusal(microsoft("GroupQueryAttention",
                                {wave({1, 1, 16}, 1), absent(), absent(), absent(), absent(),
                                 vector<int32_t>({0}), scalar<int32_t>(1)},
                                a)),
              HasSubstr("k_quant_type PER_TENSOR; supported: NONE"));
}

TEST(Microsoft, WeightsOfFewBits) {
  // One column; K = 3 of a block of 16: the numbers 1, 2, 3 of 4 bits, the low half of a byte
  // first.
  std::vector<uint8_t> bytes(8, 0);
  bytes[0] = 0x21, bytes[1] = 0x03;
  const Tensor weights = bits(DType::u8, {1, 1, 8}, bytes);
  const Attributes a = with({{"N", 1}, {"K", 3}, {"bits", 4}, {"block_size", 16}});
  const Tensor x = tensor<float>({1, 3}, {1, 10, 100}), scale = tensor<float>({1, 1}, {0.5f});
  EXPECT_THAT(elements<float>(evaluate(microsoft("MatMulNBits", {x, weights, scale}, a))),
              ElementsAre(0.5f * (-7 - 60 - 500)));  // the zero point is 8
  EXPECT_THAT(elements<float>(evaluate(microsoft(
                  "MatMulNBits", {x, weights, scale, bits(DType::u8, {1, 1}, {0xf1})}, a))),
              ElementsAre(0.5f * (0 + 10 + 200)));
  EXPECT_THAT(refusal(microsoft("MatMulNBits", {x, weights, scale},
                                with({{"N", 1}, {"K", 3}, {"bits", 3}, {"block_size", 16}}))),
              HasSubstr("weights of 3 bits; supported: 2, 4, 8"));
  EXPECT_THAT(refusal(microsoft("MatMulNBits", {x, weights, tensor<float>({1, 2}, {1, 1})}, a)),
              HasSubstr("scales [1, 2]; 1 elements expected"));
  EXPECT_THAT(refusal(microsoft("MatMulNBits",
                                {x, weights, scale, absent(), vector<int32_t>({0, 1, 0})}, a)),
              HasSubstr("group 1 of 1"));
}

}  // namespace
}  // namespace hologram::graph
