#include "support/hash.h"

#include <xxhash.h>

namespace {

// Short input, such as what opening an archive hashes, by the vectors every CPU has: to ask this
// one for its widest takes longer, most of all in a virtual machine.
constexpr size_t kShort = 32 << 10;

uint64_t short_hash64(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}
XXH128_hash_t short_hash128(const void* data, size_t size) { return XXH3_128bits(data, size); }

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
  const XXH128_hash_t hash = bytes.size() <= kShort ? short_hash128(bytes.data(), bytes.size())
                                                    : XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace hologram
