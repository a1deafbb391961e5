// XXH3-128 by AVX2, half the time of the library's: for input that is too short for the library's
// own choice among CPUs to pay. Only on x86-64 (HOLOGRAM_HASH_AVX2).
#pragma once

#include <cstddef>

#include "support/hash.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HOLOGRAM_HASH_AVX2

namespace hologram {

// What was found out when the process started: no question to the CPU.
inline bool has_hash_avx2() { return __builtin_cpu_supports("avx2") != 0; }
// Only where has_hash_avx2().
Hash128 hash128_avx2(const void* data, size_t size);

}  // namespace hologram
#endif
