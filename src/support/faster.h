// faster: which of two ways to do something takes less time here.
#pragma once

#include <algorithm>
#include <chrono>

#include "support/function_ref.h"
#include "support/result.h"

namespace hologram {

// Whether `first` takes less time than `second`, by the best of calls in turns: what disturbs one
// of them for a while disturbs the other as well. Each is called once before, then at least 3 times
// and for as long as both together take less than 0.1 s, 50 times at most.
inline Result<bool> faster(FunctionRef<Status()> first, FunctionRef<Status()> second) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLeast = 3, kMost = 50;
  HOLOGRAM_CHECK(first());
  HOLOGRAM_CHECK(second());
  auto best_first = Clock::duration::max(), best_second = best_first;
  const auto begin = Clock::now();
  for (int turn = 0; turn < kMost; ++turn) {
    const auto start = Clock::now();
    if (turn >= kLeast && start - begin > std::chrono::milliseconds(100)) break;
    HOLOGRAM_CHECK(first());
    const auto between = Clock::now();
    HOLOGRAM_CHECK(second());
    best_first = std::min(best_first, between - start);
    best_second = std::min(best_second, Clock::now() - between);
  }
  return best_first < best_second;
}

}  // namespace hologram
