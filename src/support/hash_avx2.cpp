#include "support/hash_avx2.h"

#ifdef HOLOGRAM_HASH_AVX2
// Compiled for AVX2: nothing else is used here that other files might share.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hologram {

Hash128 hash128_avx2(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.low64, hash.high64};
}

}  // namespace hologram
#endif
