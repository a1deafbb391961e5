// SlotPool: memory for short-lived buffers, in consecutive slots of 12,288 bytes.
//
// A buffer takes as many neighbouring slots as it needs, at most 48. The pool is a shortcut, not a
// limit: when a buffer is larger, or no run of free slots is long enough, take() says so and the
// caller allocates directly, so fragmentation can never make an allocation fail.
// Safe from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "support/aligned.h"

namespace hologram::backends {

class SlotPool {
 public:
  static constexpr uint64_t kSlotBytes = 12288;
  static constexpr uint64_t kDefaultSlots = 96;
  static constexpr uint64_t kMaxRun = 48;

  struct Run {
    void* address = nullptr;
    uint32_t first = 0;
    uint32_t count = 0;
  };

  // As many whole slots as `bytes` holds; memory is taken from the system on first use.
  explicit SlotPool(uint64_t bytes);

  // Empty: allocate directly.
  std::optional<Run> take(uint64_t bytes);
  void give_back(uint32_t first, uint32_t count);

  uint64_t slots() const { return used_.size(); }
  uint64_t slots_used() const;

 private:
  mutable std::mutex mutex_;
  AlignedBytes memory_;
  std::vector<bool> used_;
  uint64_t used_count_ = 0;
  size_t next_ = 0;  // where the last run ended: the search starts there
};

}  // namespace hologram::backends
