// MemoryPlan: where in one arena each value lies, by lifetime.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hologram::compiler {

// Alive from step `first` to step `last`, both included.
struct Lifetime {
  uint64_t size;
  uint32_t first, last;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // one a lifetime, multiples of 64
  uint64_t total = 0;
};

// The better of greedy-by-size and first-fit in order of birth. Values whose lifetimes overlap
// never share a byte.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace hologram::compiler
