#include "compiler/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "support/aligned.h"

namespace hologram::compiler {
namespace {

// Each value in the given order goes to the lowest gap that holds it.
MemoryPlan place(std::span<const Lifetime> lifetimes, std::span<const uint32_t> order) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<uint32_t> placed;  // by offset
  for (uint32_t id : order) {
    const Lifetime& value = lifetimes[id];
    const uint64_t size = align_up(std::max<uint64_t>(value.size, 1), kAlignment);
    uint64_t offset = 0;
    for (uint32_t other : placed) {
      const Lifetime& o = lifetimes[other];
      if (o.last < value.first || value.last < o.first) continue;
      if (plan.offsets[other] >= offset + size) break;
      offset = std::max(offset,
                        plan.offsets[other] + align_up(std::max<uint64_t>(o.size, 1), kAlignment));
    }
    plan.offsets[id] = offset;
    plan.total = std::max(plan.total, offset + size);
    placed.insert(
        std::ranges::upper_bound(placed, offset, {}, [&](uint32_t p) { return plan.offsets[p]; }),
        id);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  std::vector<uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t id) { return lifetimes[id].first; });
  MemoryPlan by_birth = place(lifetimes, order);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t id) { return lifetimes[id].size; });
  MemoryPlan by_size = place(lifetimes, order);
  return by_size.total <= by_birth.total ? by_size : by_birth;
}

}  // namespace hologram::compiler
