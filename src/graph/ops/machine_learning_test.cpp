#include <gmock/gmock.h>

#include <cmath>

#include "graph/testing/evaluate.h"

namespace hologram::graph::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Call ml(std::string op, std::vector<Tensor> inputs, Attributes attributes) {
  return {std::move(op), std::move(inputs), std::move(attributes), 1, "ai.onnx.ml"};
}

TEST(MachineLearning, BinarizerComparesIntegersWithFractions) {
  Attributes a;
  a.set("threshold", 0.5);
  EXPECT_THAT(elements<int64_t>(evaluate(ml("Binarizer", {vector<int64_t>({-1, 0, 1})}, a))),
              ElementsAre(0, 0, 1));
  a.set("threshold", -0.5);
  EXPECT_THAT(elements<int64_t>(evaluate(ml("Binarizer", {vector<int64_t>({-1, 0, 1})}, a))),
              ElementsAre(0, 1, 1));
}

TEST(MachineLearning, LabelEncoderFindsNanAndGivesDefaults) {
  Attributes a;
  a.set("keys_floats", std::vector<float>{1.5f, NAN});
  a.set("values_strings", std::vector<std::string>{"one", "nan"});
  const Tensor y = evaluate(ml("LabelEncoder", {vector<float>({NAN, 1.5f, 7})}, a));
  EXPECT_THAT(elements<std::string>(y), ElementsAre("nan", "one", "_Unused"));
}

TEST(MachineLearning, LabelEncoderRefusesOtherKeysThanItsInput) {
  Attributes a;
  a.set("keys_int64s", std::vector<int64_t>{1});
  a.set("values_int64s", std::vector<int64_t>{1});
  EXPECT_THAT(refusal(ml("LabelEncoder", {vector<float>({1})}, a)), HasSubstr("keys of type i64"));
}

// x <= 2 ? 0.25 for target 0 : 0.75 for target 1; what is missing goes left.
Attributes stump() {
  Attributes a;
  a.set("n_targets", int64_t{2});
  a.set("tree_roots", std::vector<int64_t>{0});
  a.set("nodes_featureids", std::vector<int64_t>{0});
  a.set("nodes_modes", vector<uint8_t>({0}));
  a.set("nodes_splits", vector<float>({2}));
  a.set("nodes_truenodeids", std::vector<int64_t>{0});
  a.set("nodes_trueleafs", std::vector<int64_t>{1});
  a.set("nodes_falsenodeids", std::vector<int64_t>{1});
  a.set("nodes_falseleafs", std::vector<int64_t>{1});
  a.set("nodes_missing_value_tracks_true", std::vector<int64_t>{1});
  a.set("leaf_targetids", std::vector<int64_t>{0, 1});
  a.set("leaf_weights", vector<float>({0.25f, 0.75f}));
  return a;
}

TEST(MachineLearning, TreesSendWhatIsMissingWhereTheySay) {
  const Tensor x = tensor<float>({3, 1}, {1, 5, NAN});
  EXPECT_THAT(elements<float>(evaluate(ml("TreeEnsemble", {x}, stump()))),
              ElementsAre(0.25f, 0, 0, 0.75f, 0.25f, 0));
}

TEST(MachineLearning, TreesRefuseIndicesOutsideAndCircles) {
  const Tensor x = tensor<float>({1, 1}, {1});
  Attributes a = stump();
  a.set("nodes_featureids", std::vector<int64_t>{1});
  EXPECT_THAT(refusal(ml("TreeEnsemble", {x}, a)), HasSubstr("feature 1 of 1"));
  a = stump();
  a.set("nodes_truenodeids", std::vector<int64_t>{9});
  EXPECT_THAT(refusal(ml("TreeEnsemble", {x}, a)), HasSubstr("goes on at 9"));
  a = stump();
  a.set("nodes_trueleafs", std::vector<int64_t>{0});
  EXPECT_THAT(refusal(ml("TreeEnsemble", {x}, a)), HasSubstr("circle"));
}

}  // namespace
}  // namespace hologram::graph::testing
