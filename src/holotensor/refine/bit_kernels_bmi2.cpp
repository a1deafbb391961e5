// BitKernels with pdep and pext; compiled with -mbmi2 -mpopcnt, used where the CPU has them.
#if defined(__BMI2__)
#include <immintrin.h>

#include <cstdint>

namespace hologram::holotensor::refine {
namespace {

unsigned count_ones(uint64_t word) { return static_cast<unsigned>(__builtin_popcountll(word)); }
uint64_t deposit(uint64_t bits, uint64_t mask) { return _pdep_u64(bits, mask); }
uint64_t extract(uint64_t word, uint64_t mask) { return _pext_u64(word, mask); }

}  // namespace
}  // namespace hologram::holotensor::refine

#include "holotensor/refine/bit_kernels-inl.h"

namespace hologram::holotensor::refine {

extern const BitKernels kBmi2BitKernels;
const BitKernels kBmi2BitKernels{split, merge, accumulate, count};

}  // namespace hologram::holotensor::refine
#endif
