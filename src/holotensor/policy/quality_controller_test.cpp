#include "holotensor/policy/quality_controller.h"

#include <gtest/gtest.h>

#include "holotensor/policy/glob.h"

namespace hologram::holotensor {
namespace {

TEST(Glob, MatchesWholeNames) {
  struct Case {
    const char *pattern, *name;
    bool matches;
  };
  for (const auto& [pattern, name, matches] : {
           Case{"attention.*", "attention.q.weight", true},
           Case{"attention.*", "self.attention.q", false},
           Case{"*mlp*", "layers.3.mlp.up", true},
           Case{"*mlp*", "mlp", true},
           Case{"*mlp*", "layers.3.attention", false},
           Case{"*", "", true},
           Case{"", "", true},
           Case{"", "a", false},
           Case{"?", "", false},
           Case{"a?c", "abc", true},
           Case{"a?c", "ac", false},
           Case{"*.weight", "a.weight.weight", true},
           Case{"*.weight", "a.weights", false},
           Case{"a*b*c", "aXXbYYbZZc", true},
           Case{"a*b*c", "aXXcYY", false},
           Case{"a\\*b", "a*b", true},
           Case{"a\\*b", "aXb", false},
           Case{"a\\?", "a?", true},
           Case{"abc\\", "abc\\", true},
           Case{"**", "anything", true},
           Case{"layers.[0]", "layers.[0]", true},
       }) {
    EXPECT_EQ(glob_matches(pattern, name), matches) << pattern << " on " << name;
  }
  // A star for each of many: no exponential search.
  const std::string stars(200, '*'), many(5000, 'a');
  EXPECT_FALSE(glob_matches(stars + "b", many));
}

// A tensor of 8 fragments of `size` bytes whose NMSE falls to a quarter with each.
TensorInfo tensor(std::string name, uint64_t size, int64_t weights = 1000) {
  TensorInfo info;
  info.name = std::move(name);
  info.shape = {weights};
  info.fragment_count = 8;
  info.min_fragments = 1;
  info.fragments.resize(8, {.size = size});
  double nmse = 1;
  for (size_t k = 0; k <= 8; ++k, nmse /= 4) info.curve.push_back({.nmse = nmse});
  info.curve.back().exact = true;
  return info;
}

TEST(QualityController, FixedTargetsGoByTheFirstRuleThatMatches) {
  const QualityController controller({.target = QualityTarget::nmse(0.3),
                                      .rules = {{"attention.*", QualityTarget::lossless()},
                                                {"*mlp*", QualityTarget::nmse(0.02)},
                                                {"*", QualityTarget::nmse(0.07)}}});
  const std::vector<TensorInfo> tensors = {tensor("attention.mlp", 10), tensor("layer.mlp.up", 10),
                                           tensor("embedding", 10)};
  const auto plan = controller.plan(tensors);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->fragments, (std::vector<size_t>{8, 3, 2}));
  EXPECT_EQ(plan->bytes, 130u);
  EXPECT_FALSE(QualityController({}).target_for("x"));
  EXPECT_EQ(QualityController({}).plan(tensors)->fragments, (std::vector<size_t>{8, 8, 8}));
}

TEST(QualityController, ATargetThatATensorCannotReachIsAnError) {
  auto lossy = tensor("w", 10);
  lossy.curve.back().exact = false;
  const QualityController controller({.target = QualityTarget::lossless()});
  EXPECT_EQ(controller.plan({&lossy, 1}).error().code(), ErrorCode::unsupported);
  const QualityController content(
      {.policy = QualityPolicy::best_effort, .target = QualityTarget::lossless()});
  EXPECT_EQ(content.plan({&lossy, 1})->fragments, (std::vector<size_t>{8}));
  EXPECT_FALSE(controller.accepts("w", lossy.curve.back()));
  EXPECT_TRUE(content.accepts("w", lossy.curve.front()));
}

TEST(QualityController, MemoryIsSpentWhereItHelpsMost) {
  const std::vector<TensorInfo> tensors = {tensor("small", 10, 1000), tensor("large", 10, 100000),
                                           tensor("dear", 1000, 1000)};
  QualityController controller({.policy = QualityPolicy::memory, .memory_bytes = 1080});
  auto plan = controller.plan(tensors);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_LE(plan->bytes, 1080u);
  EXPECT_EQ(plan->fragments[2], 1u);
  EXPECT_GT(plan->fragments[1], plan->fragments[0]);
  EXPECT_GE(plan->bytes, 1070u) << "nothing that fits is left unused";

  controller.set_memory(1019);
  EXPECT_EQ(controller.plan(tensors).error().code(), ErrorCode::resource_exhausted);
  controller.set_memory(100000);
  EXPECT_EQ(controller.plan(tensors)->fragments, (std::vector<size_t>{8, 8, 8}));
}

TEST(QualityController, TargetsComeBeforeWhatIsLeft) {
  const std::vector<TensorInfo> tensors = {tensor("attention.q", 10), tensor("mlp", 10, 1000000)};
  const QualityController controller({.policy = QualityPolicy::memory,
                                      .rules = {{"attention.*", QualityTarget::lossless()}},
                                      .memory_bytes = 100});
  EXPECT_EQ(controller.plan(tensors)->fragments, (std::vector<size_t>{8, 2}));
}

TEST(QualityController, SeesBehindAFragmentThatHelpsLittle) {
  auto stepped = tensor("stepped", 10);
  for (size_t k = 1; k < 4; ++k) stepped.curve[k].nmse = 0.999;
  const QualityController controller({.policy = QualityPolicy::memory, .memory_bytes = 40});
  EXPECT_EQ(controller.plan({&stepped, 1})->fragments, (std::vector<size_t>{4}));
}

TEST(QualityController, ADeadlineFollowsTheMeasuredSpeed) {
  const std::vector<TensorInfo> tensors = {tensor("w", 1000)};
  QualityController controller({.policy = QualityPolicy::latency,
                                .deadline = std::chrono::milliseconds(500),
                                .bytes_per_second = 8000});
  EXPECT_EQ(controller.plan(tensors)->fragments, (std::vector<size_t>{4}));
  controller.observe_transfer(16000, std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(controller.bytes_per_second(), 16000) << "the assumption is replaced";
  EXPECT_EQ(controller.plan(tensors)->fragments, (std::vector<size_t>{8}));
  for (int i = 0; i < 50; ++i) controller.observe_transfer(4000, std::chrono::seconds(1));
  EXPECT_NEAR(controller.bytes_per_second(), 4000, 1);
  EXPECT_EQ(controller.plan(tensors)->fragments, (std::vector<size_t>{2}));
  for (int i = 0; i < 50; ++i) controller.observe_transfer(100, std::chrono::seconds(1));
  EXPECT_EQ(controller.plan(tensors).error().code(), ErrorCode::resource_exhausted);
}

TEST(QualityController, KnowsTheMachinesMemory) { EXPECT_GT(available_memory(), 1u << 20); }

}  // namespace
}  // namespace hologram::holotensor
