// Random operators: the same in every run, different from node to node, and of the right shape and
// distribution.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "run_model.h"
#include "tests/error/onnx_bytes.h"

namespace hologram {
namespace {

using namespace hologram::testing;
using kernels::Value;
using ::testing::HasSubstr;

std::string seed_attribute(float seed) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  w.add_string(1, "seed");
  w.add_float(2, seed);
  w.add_int32(20, 1);
  return bytes;
}

const std::vector<int64_t> kShape = {1000};

// Two nodes of an operator that takes a shape.
Result<std::vector<Value>> two(const char* op, Names more = {}) {
  Names attributes = {attribute("shape", kShape)};
  attributes.insert(attributes.end(), more.begin(), more.end());
  return run_model(
      model(graph_text({{node({op, {}, {"y"}, attributes}), node({op, {}, {"z"}, attributes})},
                        {},
                        {value("y", kFloat, {-99}), value("z", kFloat, {-99})},
                        {}})),
      {});
}

TEST(Random, NodesWithoutASeedDifferAndRunsDoNot) {
  for (const char* op : {"RandomNormal", "RandomUniform"}) {
    const auto first = two(op), second = two(op);
    ASSERT_TRUE(first.has_value()) << first.error().to_string();
    EXPECT_EQ(elements<float>((*first)[0]), elements<float>((*second)[0]));
    EXPECT_EQ(elements<float>((*first)[1]), elements<float>((*second)[1]));
    EXPECT_NE(elements<float>((*first)[0]), elements<float>((*first)[1]));
  }
}

TEST(Random, ASeedIsASeed) {
  const auto out = two("RandomUniform", {seed_attribute(0)});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  EXPECT_EQ(elements<float>((*out)[0]), elements<float>((*out)[1]));
  EXPECT_NEAR(elements<float>((*out)[0])[0], 0.54881350, 1e-7);  // numpy.random.seed(0)
  EXPECT_NEAR(elements<float>((*out)[0])[1], 0.71518937, 1e-7);
  for (const float odd : {-1.0f, 1e30f, std::nanf("")})
    EXPECT_TRUE(two("RandomUniform", {seed_attribute(odd)}));
}

TEST(Random, HasItsDistribution) {
  const std::vector<float> normal = elements<float>((*two("RandomNormal"))[0]);
  const std::vector<float> uniform = elements<float>((*two("RandomUniform"))[1]);
  auto mean = [](const std::vector<float>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  auto deviation = [&](const std::vector<float>& x) {
    double sum = 0;
    for (const float v : x) sum += (v - mean(x)) * (v - mean(x));
    return std::sqrt(sum / static_cast<double>(x.size()));
  };
  EXPECT_NEAR(mean(normal), 0, 0.1);
  EXPECT_NEAR(deviation(normal), 1, 0.1);
  EXPECT_NEAR(mean(uniform), 0.5, 0.05);
  EXPECT_NEAR(deviation(uniform), std::sqrt(1.0 / 12), 0.02);
}

TEST(Random, BernoulliFollowsItsProbabilities) {
  const std::string text = model(graph_text({{node({"Bernoulli", {"p"}, {"y"}})},
                                             {value("p", kFloat, {3000})},
                                             {value("y", kFloat, {3000})},
                                             {}}));
  std::vector<float> p(3000, 0.25f);
  std::fill(p.begin() + 1000, p.begin() + 2000, 1.0f);
  std::fill(p.begin() + 2000, p.end(), 0.0f);
  const auto out = run_model(text, {given<float>({3000}, p)});
  ASSERT_TRUE(out.has_value()) << out.error().to_string();
  const std::vector<float> y = elements<float>((*out)[0]);
  EXPECT_NEAR(std::accumulate(y.begin(), y.begin() + 1000, 0.0), 250, 50);
  EXPECT_EQ(std::accumulate(y.begin() + 1000, y.begin() + 2000, 0.0), 1000);
  EXPECT_EQ(std::accumulate(y.begin() + 2000, y.end(), 0.0), 0);
}

TEST(Random, ImpossibleShapesAreRefused) {
  const auto out = run_model(
      model(graph_text(
          {{node({"RandomNormal", {}, {"y"}, {attribute("shape", std::vector<int64_t>{-3})}})},
           {},
           {value("y", kFloat, {-99})},
           {}})),
      {});
  ASSERT_FALSE(out.has_value());
  EXPECT_THAT(out.error().to_string(), HasSubstr("-3"));
}

}  // namespace
}  // namespace hologram
