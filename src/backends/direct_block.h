// The shortest way to run one block of a program with group reductions: see DirectEntry.
#pragma once

#include "backends/backend.h"

namespace hologram::backends {

// Threads of a block, and the scratch a direct launch brings for them.
inline constexpr uint32_t kDirectBlock = 64;
inline constexpr uint64_t kDirectBlockScratch = 2048;

// Runs one block of kDirectBlock threads on the words of `direct`. Returns the trap that the
// program met. Code for blocks of that size keeps everything in registers: the scratch is on the
// stack but not touched, and takes no line of the first cache from the caller's data.
inline uint32_t run_direct_block(const DirectEntry& program, DirectLaunch& direct) {
  alignas(64) std::byte scratch[kDirectBlockScratch];
  direct.launch.block[0] = kDirectBlock;
  program.entry(&direct.launch, 0, 1, scratch);
  if (direct.trap == isa::kTrapNone) [[likely]]
    return isa::kTrapNone;
  return std::exchange(direct.trap, isa::kTrapNone);
}

}  // namespace hologram::backends
