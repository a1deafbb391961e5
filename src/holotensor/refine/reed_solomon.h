// ReedSolomon: any k of n shards give back the data (a Cauchy code over GF(256), on ISA-L).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "support/result.h"

namespace hologram::holotensor::refine {

inline constexpr unsigned kMaxShards = 255;

inline size_t shard_size(size_t data, unsigned k) { return (data + k - 1) / k; }

// n shards of shard_size() bytes; the first k are the data itself, padded with zeros.
// 1 <= k <= n <= kMaxShards.
std::vector<std::vector<std::byte>> encode_shards(std::span<const std::byte> data, unsigned k,
                                                  unsigned n);

struct Shard {
  unsigned index;
  std::span<const std::byte> bytes;
};
// The data of `size` bytes from at least k shards with different indices.
Result<std::vector<std::byte>> decode_shards(std::span<const Shard> shards, unsigned k, unsigned n,
                                             size_t size);

}  // namespace hologram::holotensor::refine
