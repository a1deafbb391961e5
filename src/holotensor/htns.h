// HTNS v1: reading the files of the older codec. Little-endian.
//
//  1. header, 96 bytes
//       "HTNS"; u32 version (1); u8 encoding; u8 compression; u16 flags; u16 total fragments; u16
//       min fragments; u64 original bytes; u64 seed; u8 dtype; u8 rank; 4 x u64 shape; 4 x f32
//       quality curve; 6 reserved; u64 XXH3-64 of bytes 0-87
//  2. index, one entry of 24 bytes a fragment
//       u16 index; u16 flags; u32 offset; u32 stored size; u32 raw size; u64 XXH3-64 of the stored
//       bytes
//  3. fragments
//
// The format does not record everything its decoder knew. What is read here, and nothing else:
//   - payloads are f32, and fragment i of F holds the items i, i + F, i + 2F, ... (quantized files
//   and those
//     with another order are refused);
//   - spectral: the items are coefficients of the orthonormal DCT-II of the tensor as one row;
//   - low rank: the items are components: scale, rows values, columns values, of the tensor as a
//   matrix of
//     its first dimension by all others;
//   - random projection: the items are products of the tensor with rows of a matrix that the file
//   does not
//     hold and whose generator is not recorded: the caller gives it, or the file is refused;
//   - compression is told by the payload's own magic (zstd or lz4 frames), because its codes are
//   not
//     recorded; so are the codes of element types, so the result is always f32.
// Its quality curve holds constants, not measurements, and is not passed on.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "support/result.h"

namespace hologram::holotensor {

enum class HtnsEncoding : uint8_t { spectral = 0, projection = 1, lowrank = 2 };

enum HtnsFlags : uint16_t {
  kHtnsHeaderChecksum = 1,
  kHtnsFragmentChecksums = 2,
  kHtnsQuantized = 4,
  kHtnsCurve = 8,
  kHtnsEssentialFirst = 0x10,
  kHtnsInterleaved = 0x20,
};

struct HtnsFragment {
  uint16_t index = 0;
  uint64_t offset = 0, stored = 0, raw = 0;
  uint64_t hash = 0;
};

struct HtnsFile {
  HtnsEncoding encoding{};
  uint8_t compression = 0;
  uint16_t flags = 0;
  uint16_t total_fragments = 0, min_fragments = 0;
  uint64_t original_bytes = 0;
  uint64_t seed = 0;
  uint8_t dtype_code = 0;
  std::vector<int64_t> shape;
  uint64_t elements = 0;
  std::vector<HtnsFragment> fragments;  // in the order of the index
};

bool is_htns(std::span<const std::byte> bytes);

// Checks everything that can be checked; fragments are checked when read.
Result<HtnsFile> parse_htns(std::span<const std::byte> bytes);

// The payload of entry `entry`, checked and decompressed.
Result<std::vector<std::byte>> read_htns_fragment(const HtnsFile& file,
                                                  std::span<const std::byte> bytes, size_t entry);

// Row `row` of the projection matrix of a file with this seed.
using HtnsProjectionRow =
    std::function<void(uint64_t seed, uint64_t row, std::span<float> coefficients)>;

struct HtnsTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
  unsigned fragments_used = 0;
  unsigned fragments_damaged = 0;
};
// The tensor from all fragments that are good. Fails when fewer than min_fragments are.
Result<HtnsTensor> decode_htns(std::span<const std::byte> bytes,
                               const HtnsProjectionRow& projection_row = {});

}  // namespace hologram::holotensor
