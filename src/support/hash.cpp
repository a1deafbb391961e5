#include "support/hash.h"

#include <xxhash.h>

#include "support/hash_avx2.h"

namespace {

// Short input, such as what opening an archive hashes, by vectors that are known to be there: to
// ask the CPU for its widest takes longer, most of all in a virtual machine.
constexpr size_t kShort = 256 << 10;

uint64_t short_hash64(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}
hologram::Hash128 short_hash128(const void* data, size_t size) {
#ifdef HOLOGRAM_HASH_AVX2
  if (hologram::has_hash_avx2()) return hologram::hash128_avx2(data, size);
#endif
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.low64, hash.high64};
}

}  // namespace

// The same hashes, by the widest vectors this CPU has: twice as fast where memory allows.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

namespace hologram {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  if (bytes.size() <= kShort) return short_hash64(bytes.data(), bytes.size(), seed);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
uint64_t hash64(std::string_view text, uint64_t seed) {
  return hash64(std::as_bytes(std::span(text)), seed);
}
Hash128 hash128(std::span<const std::byte> bytes) {
  if (bytes.size() <= kShort) return short_hash128(bytes.data(), bytes.size());
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace hologram
