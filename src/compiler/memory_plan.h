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

  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // one a lifetime, multiples of 64
  uint64_t total = 0;
  std::vector<uint32_t> order;  // in which they were placed, each at the lowest gap
};

// Each value in the given order goes to the lowest gap that holds it.
MemoryPlan place_in_order(std::span<const Lifetime> lifetimes, std::vector<uint32_t> order);

// The best of greedy-by-size, first-fit in order of birth and greedy by size times lifetime. Values
// whose lifetimes overlap never share a byte.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace hologram::compiler
