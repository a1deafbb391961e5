#include "compiler/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "support/aligned.h"

namespace hologram::compiler {

MemoryPlan place_in_order(std::span<const Lifetime> lifetimes, std::vector<uint32_t> order) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<uint32_t> placed;  // by offset
  for (uint32_t id : order) {
    const Lifetime& value = lifetimes[id];
    const uint64_t size = align_up(std::max<uint64_t>(value.size, 1), kAlignment);
    uint64_t offset = 0;
    for (uint32_t other : placed) {
      const Lifetime& o = lifetimes[other];
      if (!o.overlaps(value)) continue;
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
  plan.order = std::move(order);
  return plan;
}

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  std::vector<uint32_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t id) { return lifetimes[id].first; });
  MemoryPlan best = place_in_order(lifetimes, order);
  const auto try_by = [&](auto key) {
    std::vector<uint32_t> other = order;
    std::ranges::stable_sort(other, std::greater(),
                             [&](uint32_t id) { return key(lifetimes[id]); });
    MemoryPlan plan = place_in_order(lifetimes, std::move(other));
    if (plan.total < best.total) best = std::move(plan);
  };
  try_by([](const Lifetime& v) { return v.size; });
  try_by([](const Lifetime& v) { return static_cast<double>(v.size) * (v.last - v.first + 1.0); });
  return best;
}

}  // namespace hologram::compiler
