// The targets that tests can run on this machine.
#pragma once

#include <vector>

#include "codegen/target.h"

namespace hologram::codegen::testing {

// Every level the machine has, and the host itself.
inline std::vector<Target> runnable_targets() {
  std::vector<Target> result;
  const auto host = Target::host();
  if (!host) return result;
  for (Level level : kLevels)
    if (level <= host->level()) result.emplace_back(level);
  result.push_back(*host);
  return result;
}

}  // namespace hologram::codegen::testing
