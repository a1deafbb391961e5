// Placement on the architectures of ../shared/models (or HOLOGRAM_MODELS); weights are not needed.
#include "compiler/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "compiler/lower.h"
#include "compiler/memory_plan.h"
#include "graph/passes/dead_code.h"
#include "graph/passes/resolve.h"
#include "onnx/model.h"
#include "support/dtype.h"

namespace hologram::compiler {
namespace {

namespace fs = std::filesystem;

fs::path models_folder() {
  if (const char* given = std::getenv("HOLOGRAM_MODELS")) return given;
  return fs::path(HOLOGRAM_SOURCE_DIR) / "../shared/models";
}

// The model beside weights that are all zero: a file without blocks.
Result<graph::Graph> read_without_weights(const fs::path& model) {
  const fs::path folder = fs::temp_directory_path() / "hologram_placement_test";
  fs::create_directories(folder);
  const fs::path copy = folder / model.filename();
  fs::copy_file(model, copy, fs::copy_options::overwrite_existing);
  const fs::path weights = fs::path(copy).replace_extension(".bin");
  std::ofstream(weights).put(0);
  fs::resize_file(weights, uint64_t{1} << 30);
  auto graph = onnx::read_model(copy);
  if (graph) {
    Status status = graph::resolve(*graph);
    if (status) graph::remove_dead_code(*graph);
    if (!status) graph = std::unexpected(status.error());
  }
  fs::remove_all(folder);
  return graph;
}

struct Lives {
  std::vector<Lifetime> lifetimes;  // of every value that a step makes, views too
  std::vector<const archive::ValueT*> values;
  std::vector<uint32_t> ids;
};

// Worked out here from the steps alone.
Lives lives_of(const archive::ModelT& model) {
  const archive::PlanT& plan = *model.plan;
  const auto steps = static_cast<uint32_t>(plan.steps.size());
  std::vector<uint32_t> first(plan.values.size(), steps), last(plan.values.size(), 0);
  for (uint32_t at = 0; at < steps; ++at) {
    for (uint32_t id : plan.steps[at]->inputs)
      if (id != graph::kNoValue) last[id] = at;
    for (uint32_t id : plan.steps[at]->outputs) first[id] = last[id] = at;
  }
  for (uint32_t id : plan.outputs) last[id] = steps;
  Lives lives;
  for (uint32_t id = 0; id < plan.values.size(); ++id) {
    const archive::ValueT& value = *plan.values[id];
    if (first[id] == steps || model.types[value.type]->dtype == static_cast<uint8_t>(DType::string))
      continue;
    uint64_t count = 1;
    for (const auto& dim : model.types[value.type]->dims)
      count *= static_cast<uint64_t>(dim.value());
    lives.lifetimes.push_back({bytes_for(static_cast<DType>(model.types[value.type]->dtype), count),
                               first[id], last[id]});
    lives.values.push_back(&value);
    lives.ids.push_back(id);
  }
  return lives;
}

uint64_t best_known(const std::vector<Lifetime>& lifetimes) {
  std::vector<uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t id) { return lifetimes[id].first; });
  const uint64_t first_fit = place_in_order(lifetimes, order).total;
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t id) { return lifetimes[id].size; });
  return std::min(first_fit, place_in_order(lifetimes, order).total);
}

// For each value, one that stands for all that concatenations join it with.
std::vector<uint32_t> joined_by_concats(const archive::PlanT& plan) {
  std::vector<uint32_t> joined(plan.values.size());
  std::iota(joined.begin(), joined.end(), 0);
  for (const auto& step : plan.steps)
    if (step->kernel == "Concat")
      for (uint32_t id : step->inputs)
        std::ranges::replace(joined, uint32_t(joined[id]), uint32_t(joined[step->outputs[0]]));
  return joined;
}

class PlacementOfModels : public testing::TestWithParam<const char*> {};

TEST_P(PlacementOfModels, NeedsNoMoreThanTheBestPlanWithoutViewsAndInPlace) {
  const fs::path model = models_folder() / (std::string(GetParam()) + ".onnx");
  if (!fs::exists(model)) GTEST_SKIP() << model << " is not there";
  auto graph = read_without_weights(model);
  ASSERT_TRUE(graph.has_value()) << graph.error().to_string();
  auto lowered = lower(*graph);
  ASSERT_TRUE(lowered.has_value()) << lowered.error().to_string();
  const archive::PlanT& plan = *lowered->model.plan;
  const Lives lives = lives_of(lowered->model);
  const uint64_t best = best_known(lives.lifetimes);
  EXPECT_LE(plan.arena, best);
  RecordProperty("arena", std::to_string(plan.arena));
  std::printf("%-22s %8.2f MB, %.3f of the best without views and in place\n", GetParam(),
              static_cast<double>(plan.arena) / 1e6,
              static_cast<double>(plan.arena) / static_cast<double>(best));

  // Values alive together share memory only where one is read to the end by the step that makes
  // the other, where one is a view, or where one is part of what a Concat makes of it.
  const std::vector<uint32_t> joined = joined_by_concats(plan);
  for (size_t a = 0; a < lives.ids.size(); ++a) {
    if (lives.values[a]->storage != archive::Storage::arena) continue;
    for (size_t b = a + 1; b < lives.ids.size(); ++b) {
      if (lives.values[b]->storage != archive::Storage::arena) continue;
      const Lifetime &x = lives.lifetimes[a], &y = lives.lifetimes[b];
      const archive::ValueT &v = *lives.values[a], &w = *lives.values[b];
      if (v.offset + v.size <= w.offset || w.offset + w.size <= v.offset) continue;
      if (!x.overlaps(y)) continue;
      const auto holds = [](const archive::ValueT& outer, const archive::ValueT& inner) {
        return outer.offset <= inner.offset &&
               inner.offset + inner.size <= outer.offset + outer.size;
      };
      if (joined[lives.ids[a]] == joined[lives.ids[b]] && (holds(v, w) || holds(w, v))) continue;
      const uint32_t meet = std::max(x.first, y.first);
      EXPECT_TRUE(meet == std::min(x.last, y.last) && v.offset == w.offset && v.size == w.size &&
                  plan.steps[meet]->kind == archive::StepKind::program)
          << v.name << " and " << w.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, PlacementOfModels,
                         testing::Values("bert_base", "clip_text", "densenet121", "distilbert",
                                         "efficientnet_b0", "gpt2", "llama_110m", "minilm_l6",
                                         "mobilenet_v2", "resnet18", "resnet18_legacy", "resnet50",
                                         "squeezenet1_1", "vit_b_16", "whisper_tiny_encoder"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hologram::compiler
