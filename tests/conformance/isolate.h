// Cases in child processes: one that crashes or hangs is one failure, not the end of the run.
#pragma once

#include <filesystem>
#include <functional>
#include <span>

#include "case.h"

namespace hologram::conformance {

// Runs all cases, several children side by side, each a stretch of them; `done` gets every result
// once, in no particular order, in this process.
void run_isolated(std::span<const std::filesystem::path> cases, unsigned jobs,
                  unsigned seconds_each, const std::function<void(size_t index, CaseResult)>& done);

}  // namespace hologram::conformance
