// A fragment on the wire: it names its tensor, checks itself, and can be stored anywhere.
//
//  1. u32  magic "HTFR" (little-endian, as is everything)
//  2. u16  index
//  3. u16  fragment count of its tensor
//  4. u64  tensor id (TensorInfo::id)
//  5. u64  stored payload size in the low 56 bits, Codec in the high 8
//  6. u64  XXH3-64 of 1-5 and 7
//  7. the stored payload
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/tensor.h"
#include "support/result.h"

namespace hologram::holotensor {

enum class Codec : uint8_t { none = 0, zstd = 1, lz4 = 2 };

inline constexpr uint32_t kFragmentMagic = 0x52465448;  // "HTFR"
inline constexpr size_t kFragmentHeaderSize = 32;

struct Fragment {
  uint16_t index = 0;
  uint16_t count = 0;
  uint64_t tensor_id = 0;
  Codec codec = Codec::none;
  uint64_t hash = 0;
  SharedBytes payload;  // as stored
};

// The whole fragment; the payload is compressed where that makes it at least 2% smaller. A payload
// with room for the header behind it becomes the fragment without another allocation.
std::vector<std::byte> make_fragment(const TensorInfo& info, uint16_t index,
                                     std::vector<std::byte> payload);

// Size of a whole fragment from its first kFragmentHeaderSize bytes; fails on a bad magic.
Result<uint64_t> fragment_size(std::span<const std::byte> header);

// The checksum that a whole fragment carries; not checked here.
uint64_t fragment_hash(std::span<const std::byte> fragment);

// Checks magic, size and checksum. The payload borrows from `bytes`.
Result<Fragment> parse_fragment(SharedBytes bytes);

// The scheme's payload: decompressed where it was compressed. Refuses to grow past `limit`.
Result<SharedBytes> payload_of(const Fragment& fragment, uint64_t limit);

// Compression of small metadata and payloads. `compress` picks none, lz4 or zstd by size.
struct Compressed {
  Codec codec = Codec::none;
  std::vector<std::byte> bytes;
};
Compressed compress(std::span<const std::byte> raw, int zstd_level = 3);
// zstd and lz4 bytes begin with what they grow to (checked against `limit` before allocating).
Result<std::vector<std::byte>> decompress(Codec codec, std::span<const std::byte> stored,
                                          uint64_t limit);

}  // namespace hologram::holotensor
