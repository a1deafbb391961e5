// XXH3 hashes: fast, for damage, not for secrecy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hologram {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);
Hash128 hash128(std::span<const std::byte> bytes);

}  // namespace hologram
