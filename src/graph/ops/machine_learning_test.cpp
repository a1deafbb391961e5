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

// Compared with ONNX Runtime in tests/peer; here what that has not.
TEST(MachineLearning, RegressionOfIntegers) {
  Attributes a;
  a.set("coefficients", std::vector<float>{2, 3});
  a.set("intercepts", std::vector<float>{0.5f});
  EXPECT_THAT(
      elements<float>(evaluate(ml("LinearRegressor", {tensor<int64_t>({2, 2}, {1, 2, 3, 4})}, a))),
      ElementsAre(8.5f, 18.5f));
  a.set("post_transform", std::string("PROBIT"));
  a.set("intercepts", std::vector<float>{-4.025f});
  EXPECT_NEAR(
      elements<float>(evaluate(ml("LinearRegressor", {tensor<int32_t>({1, 2}, {1, 1})}, a)))[0],
      1.959964f, 1e-5f);  // the 97.5th percentile
  a.set("targets", int64_t{2});
  EXPECT_THAT(refusal(ml("LinearRegressor", {tensor<int64_t>({1, 2}, {1, 2})}, a)),
              HasSubstr("2 coefficients and 1 intercepts for 2 features and 2 results"));
}

TEST(MachineLearning, CategoriesThatMustBeKnown) {
  Attributes a;
  a.set("cats_int64s", std::vector<int64_t>{3, 5});
  EXPECT_THAT(elements<float>(evaluate(ml("OneHotEncoder", {vector<int32_t>({5, 4})}, a))),
              ElementsAre(0, 1, 0, 0));
  a.set("zeros", int64_t{0});
  EXPECT_THAT(refusal(ml("OneHotEncoder", {vector<int32_t>({5, 4})}, a)),
              HasSubstr("element 1 is of no category, and zeros=0"));
  EXPECT_THAT(refusal(ml("OneHotEncoder", {strings({1}, {"x"})}, a)), HasSubstr("no cats_strings"));
}

// One node: x <= 2 ? votes 0.25 and 0.5 : votes 0.75 and 0.1, for two classes.
TEST(MachineLearning, OlderTreesChooseTheHigherOfTwoScores) {
  Attributes a;
  a.set("nodes_treeids", std::vector<int64_t>{0, 0, 0});
  a.set("nodes_nodeids", std::vector<int64_t>{0, 1, 2});
  a.set("nodes_featureids", std::vector<int64_t>{0, 0, 0});
  a.set("nodes_modes", std::vector<std::string>{"BRANCH_LEQ", "LEAF", "LEAF"});
  a.set("nodes_values", std::vector<float>{2, 0, 0});
  a.set("nodes_truenodeids", std::vector<int64_t>{1, 0, 0});
  a.set("nodes_falsenodeids", std::vector<int64_t>{2, 0, 0});
  a.set("class_treeids", std::vector<int64_t>{0, 0, 0, 0});
  a.set("class_nodeids", std::vector<int64_t>{1, 1, 2, 2});
  a.set("class_ids", std::vector<int64_t>{0, 1, 0, 1});
  a.set("class_weights", std::vector<float>{0.25f, 0.5f, 0.75f, 0.125f});
  a.set("classlabels_strings", std::vector<std::string>{"low", "high"});
  Call call = ml("TreeEnsembleClassifier", {tensor<int32_t>({2, 1}, {1, 5})}, a);
  call.outputs = 2;
  auto out = evaluate_all(call);
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_THAT(elements<std::string>((*out)[0]), ElementsAre("high", "low"));
  EXPECT_THAT(elements<float>((*out)[1]), ElementsAre(0.25f, 0.5f, 0.75f, 0.125f));

  call.attributes.set("nodes_falsenodeids", std::vector<int64_t>{7, 0, 0});
  EXPECT_THAT(refusal(call), HasSubstr("node 0 of tree 0 goes on at 7, which is not there"));
  call.attributes.set("nodes_falsenodeids", std::vector<int64_t>{0, 0, 0});
  EXPECT_THAT(refusal(call), HasSubstr("tree 0 goes in a circle to its first node"));
  call.attributes = a;
  call.attributes.set("nodes_modes", std::vector<std::string>{"BRANCH_MEMBER", "LEAF", "LEAF"});
  EXPECT_THAT(refusal(call), HasSubstr("nodes_modes 'BRANCH_MEMBER'; supported"));
  call.attributes = a;
  call.attributes.set("class_ids", std::vector<int64_t>{0, 1, 0, 2});
  EXPECT_THAT(refusal(call), HasSubstr("a vote for 2 of 2 at node 2 of tree 0"));
  call.attributes.set("classlabels_int64s", std::vector<int64_t>{0, 1});
  EXPECT_THAT(refusal(call), HasSubstr("one of classlabels_int64s and classlabels_strings"));
}

TEST(MachineLearning, MachinesRefuseSizesThatDoNotFit) {
  Attributes a;
  a.set("support_vectors", std::vector<float>{1, 2, 3});
  a.set("coefficients", std::vector<float>{1, 2});
  a.set("rho", std::vector<float>{0});
  a.set("n_supports", int64_t{2});
  EXPECT_THAT(refusal(ml("SVMRegressor", {tensor<float>({1, 2}, {1, 2})}, a)),
              HasSubstr("3 numbers of support vectors and 2 coefficients for 2 features; 4 and 2"));
  a.set("kernel_type", std::string("COSINE"));
  EXPECT_THAT(refusal(ml("SVMRegressor", {tensor<float>({1, 2}, {1, 2})}, a)),
              HasSubstr("kernel_type 'COSINE'; supported: LINEAR, POLY, RBF, SIGMOID"));
}

TEST(MachineLearning, MapsAreRefusedByName) {
  for (const char* op : {"ZipMap", "CastMap", "DictVectorizer"})
    EXPECT_THAT(refusal(ml(op, {tensor<float>({1, 2}, {1, 2})}, {})),
                HasSubstr(std::string(op) + " works on maps; supported: tensors, sequences"));
}

}  // namespace
}  // namespace hologram::graph::testing
