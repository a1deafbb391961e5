#include "backends/cpu/slot_pool.h"

#include <algorithm>

namespace hologram::backends {

static_assert(SlotPool::kSlotBytes % kAlignment == 0, "every slot must start aligned");

SlotPool::SlotPool(uint64_t bytes) : used_(bytes / kSlotBytes, false) {}

std::optional<SlotPool::Run> SlotPool::take(uint64_t bytes) {
  const uint64_t need = std::max<uint64_t>(1, (bytes + kSlotBytes - 1) / kSlotBytes);
  if (bytes > kMaxRun * kSlotBytes || need > used_.size()) return std::nullopt;
  std::lock_guard lock(mutex_);
  if (need > used_.size() - used_count_) return std::nullopt;
  if (memory_.size() == 0) {
    auto memory = AlignedBytes::allocate(used_.size() * kSlotBytes);
    if (!memory) return std::nullopt;
    memory_ = *std::move(memory);
  }
  // Next fit: from where the last run ended to the end, then from the start.
  const auto search = [&](size_t begin, size_t end) -> std::optional<size_t> {
    size_t run = 0;
    for (size_t i = begin; i < end; ++i) {
      run = used_[i] ? 0 : run + 1;
      if (run == need) return i + 1 - need;
    }
    return std::nullopt;
  };
  std::optional<size_t> first = search(next_, used_.size());
  if (!first) first = search(0, std::min(used_.size(), next_ + need));
  if (!first) return std::nullopt;
  std::fill_n(used_.begin() + static_cast<ptrdiff_t>(*first), need, true);
  used_count_ += need;
  next_ = (*first + need) % used_.size();
  return Run{memory_.data() + *first * kSlotBytes, static_cast<uint32_t>(*first),
             static_cast<uint32_t>(need)};
}

void SlotPool::give_back(uint32_t first, uint32_t count) {
  std::lock_guard lock(mutex_);
  std::fill_n(used_.begin() + first, count, false);
  used_count_ -= count;
}

uint64_t SlotPool::slots_used() const {
  std::lock_guard lock(mutex_);
  return used_count_;
}

}  // namespace hologram::backends
