// turns: what the steps of several sessions take, measured side by side.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/session/session.h"

namespace hologram::runtime {

// For each session the milliseconds of its steps by name, the best of runs in turns: what disturbs
// one of them for a while disturbs the others as well. `inputs` has those of each session. A turn
// is two runs, of which the first brings back what the others have taken from the caches: sessions
// are run alone. There are at least 3 turns, and more for as long as all together take less than
// 0.4 s, 30 at most.
inline Result<std::vector<std::map<std::string, double>>> times_in_turns(
    std::span<const Session> sessions, std::span<const std::vector<kernels::Value>> inputs) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLeast = 3, kMost = 30;
  std::vector<std::map<std::string, double>> best(sessions.size());
  std::vector<StepTime> steps;
  const auto begin = Clock::now();
  for (int turn = 0; turn < kMost; ++turn) {
    if (turn >= kLeast && Clock::now() - begin > std::chrono::milliseconds(400)) break;
    for (size_t i = 0; i < sessions.size(); ++i) {
      for (int run = 0; run < 2; ++run) HOLOGRAM_CHECK(sessions[i].profile(inputs[i], steps));
      std::map<std::string, double> times;  // steps may share a name
      for (const StepTime& step : steps) times[step.name] += step.milliseconds;
      for (const auto& [name, time] : times) {
        const auto [at, is_new] = best[i].try_emplace(name, time);
        if (!is_new) at->second = std::min(at->second, time);
      }
    }
  }
  return best;
}

}  // namespace hologram::runtime
