#include "holotensor/refine/bit_kernels.h"

#include <bit>

namespace hologram::holotensor::refine {
namespace {

unsigned count_ones(uint64_t word) { return static_cast<unsigned>(std::popcount(word)); }

// The lowest bits of `bits` to the places of the ones of `mask`, in order.
uint64_t deposit(uint64_t bits, uint64_t mask) {
  uint64_t out = 0;
  for (; mask != 0; mask &= mask - 1, bits >>= 1)
    if (bits & 1) out |= mask & (0 - mask);
  return out;
}

uint64_t extract(uint64_t word, uint64_t mask) {
  uint64_t out = 0;
  for (unsigned at = 0; mask != 0; mask &= mask - 1, ++at)
    out |= static_cast<uint64_t>((word & mask & (0 - mask)) != 0) << at;
  return out;
}

}  // namespace
}  // namespace hologram::holotensor::refine

#include "holotensor/refine/bit_kernels-inl.h"

namespace hologram::holotensor::refine {

const BitKernels kPortableBitKernels{split, merge, accumulate, count};

#if defined(__x86_64__)
extern const BitKernels kBmi2BitKernels;

const BitKernels& bit_kernels() {
  static const bool bmi2 = __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  return bmi2 ? kBmi2BitKernels : kPortableBitKernels;
}
#else
const BitKernels& bit_kernels() { return kPortableBitKernels; }
#endif

}  // namespace hologram::holotensor::refine
