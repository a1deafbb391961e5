#include <gmock/gmock.h>

#include <limits>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Attention, InDoubleIsTheMeanOfWhatAQueryMaySee) {
  Attributes causal;
  causal.set("is_causal", int64_t{1});
  const Tensor q = tensor<double>({1, 1, 2, 1}, {0, 0}), v = tensor<double>({1, 1, 2, 1}, {2, 4});
  EXPECT_THAT(elements<double>(evaluate({"Attention", {q, q, v}, causal})), ElementsAre(2, 3));
}

TEST(Attention, OfAMaskedRowIsZeroWhateverIsBehindTheMask) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor q = tensor<float>({1, 1, 1, 1}, {1}), k = tensor<float>({1, 1, 2, 1}, {nan, 1});
  const Tensor v = tensor<float>({1, 1, 2, 1}, {5, 7});
  EXPECT_THAT(elements<float>(evaluate({"Attention", {q, k, v, bools({1, 2}, {false, false})}})),
              ElementsAre(0));
  EXPECT_THAT(elements<float>(evaluate({"Attention", {q, k, v, bools({1, 2}, {false, true})}})),
              ElementsAre(7));
}

TEST(Attention, OfNoKeysIsZero) {
  const Tensor q = tensor<float>({1, 1, 2, 3}, std::vector<float>(6, 1));
  const Tensor none = *Tensor::allocate(DType::f32, {1, 1, 0, 3});
  EXPECT_THAT(elements<float>(evaluate({"Attention", {q, none, none}})), Each(0.f));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Tensor q = tensor<float>({1, 3, 1, 1}, {1, 2, 3}), k = tensor<float>({1, 2, 1, 1}, {1, 2});
  EXPECT_THAT(refusal({"Attention", {q, k, k}}), HasSubstr("3 heads of Q and 2"));
  EXPECT_THAT(refusal({"Attention", {q, q, q, absent(), q}}), HasSubstr("come together"));
  EXPECT_THAT(refusal({"Attention", {q, q, q, vector<float>({1, 2})}}), HasSubstr("attn_mask"));
}

TEST(RotaryEmbedding, RefusesAPositionOutsideTheCache) {
  const Tensor x = tensor<float>({1, 1, 1, 2}, {1, 2}), cache = tensor<float>({4, 1}, {1, 1, 1, 1});
  EXPECT_THAT(refusal({"RotaryEmbedding", {x, cache, cache, tensor<int64_t>({1, 1}, {4})}}),
              HasSubstr("position 4"));
}

// One unit, one gate: h = f(x + h).
Call rnn(std::vector<float> x, std::string activation) {
  const Tensor one = tensor<float>({1, 1, 1}, {1});
  const auto steps = static_cast<int64_t>(x.size());
  Call call{"RNN", {tensor<float>({steps, 1, 1}, std::move(x)), one, one}};
  call.attributes.set("activations", std::vector<std::string>{std::move(activation)});
  call.attributes.set("hidden_size", int64_t{1});
  return call;
}

TEST(RNN, UsesTheActivationAndItsNumbers) {
  Call call = rnn({1, 2, -10}, "Affine");
  call.attributes.set("activation_alpha", std::vector<float>{2});
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(2, 8, -4));
  EXPECT_THAT(elements<float>(evaluate(rnn({1, 2, -10}, "Relu"))), ElementsAre(1, 3, 0));
  EXPECT_THAT(refusal(rnn({1}, "Cosine")), HasSubstr("'Cosine'"));
}

TEST(RNN, StopsAtTheLengthOfASequenceAndRunsItBackwards) {
  Call call = rnn({1, 2, 4}, "Relu");
  call.inputs.push_back(absent());
  call.inputs.push_back(vector<int32_t>({2}));
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(1, 3, 0));
  call.attributes.set("direction", std::string("reverse"));
  EXPECT_THAT(elements<float>(evaluate(call)), ElementsAre(3, 2, 0));
  call.inputs.back() = vector<int32_t>({4});
  EXPECT_THAT(refusal(call), HasSubstr("length 4"));
}

}  // namespace
}  // namespace hologram::graph::testing
