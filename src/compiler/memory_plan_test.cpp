#include "compiler/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hologram::compiler {
namespace {

TEST(MemoryPlan, ValuesAliveTogetherNeverShareAByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> values;
    for (int i = 0; i < 60; ++i) {
      const uint32_t first = random() % 50;
      values.push_back({random() % 5000, first, first + static_cast<uint32_t>(random() % 8)});
    }
    const MemoryPlan plan = plan_memory(values);
    uint64_t busiest = 0;
    for (uint32_t step = 0; step < 60; ++step) {
      uint64_t alive = 0;
      for (const Lifetime& v : values)
        if (v.first <= step && step <= v.last) alive += v.size;
      busiest = std::max(busiest, alive);
    }
    EXPECT_GE(plan.total, busiest);
    for (size_t a = 0; a < values.size(); ++a) {
      EXPECT_EQ(plan.offsets[a] % 64, 0u);
      EXPECT_LE(plan.offsets[a] + values[a].size, plan.total);
      for (size_t b = a + 1; b < values.size(); ++b) {
        const bool together =
            values[a].first <= values[b].last && values[b].first <= values[a].last;
        const bool apart = plan.offsets[a] + values[a].size <= plan.offsets[b] ||
                           plan.offsets[b] + values[b].size <= plan.offsets[a];
        EXPECT_TRUE(!together || apart);
      }
    }
  }
}

TEST(MemoryPlan, ReusesWhatIsFree) {
  // A chain: two values alive at a time, whatever its length.
  std::vector<Lifetime> chain;
  for (uint32_t i = 0; i < 100; ++i) chain.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_memory(chain).total, 2048u);
  EXPECT_EQ(plan_memory({}).total, 0u);
}

}  // namespace
}  // namespace hologram::compiler
