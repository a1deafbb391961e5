// ReedSolomon: any k of n shards give back the data (a Cauchy code over GF(256), on ISA-L).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "support/result.h"

namespace hologram::holotensor::refine {

inline constexpr unsigned kMaxShards = 255;

inline size_t shard_size(size_t data, unsigned k) { return (data + k - 1) / k; }

// Writes one of n shards into `out`, of shard_size() bytes. The first k are the data itself, which
// has been padded with zeros to k of them. 1 <= k <= n <= kMaxShards.
void encode_shard(std::span<const std::byte> padded, unsigned k, unsigned n, unsigned index,
                  std::span<std::byte> out);

struct Shard {
  unsigned index;
  std::span<const std::byte> bytes;
};
// The data of `size` bytes from at least k shards with different indices.
Result<std::vector<std::byte>> decode_shards(std::span<const Shard> shards, unsigned k, unsigned n,
                                             size_t size);

}  // namespace hologram::holotensor::refine
