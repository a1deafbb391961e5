// The `.ht` file, stand-alone or as a section of a `.holo` archive. Little-endian.
//
//  1. header, 64 bytes
//       u32 magic "HOLT"; u32 version (2); u64 total size of the file or section;
//       u64 stored size of the directory; u64 its raw size; u32 tensor count; u8 Codec of the
//       directory; 3 zero bytes; u64 XXH3-64 of the stored directory; 8 zero bytes;
//       u64 XXH3-64 of bytes 0-55
//  2. directory, compressed where that wins: it comes first, so that two range requests (header,
//     directory) tell a reader everything. `varint` is LEB128, up to 64 bits. For each tensor:
//       name (varint length, UTF-8); u8 DType; varint rank and dimensions; u8 SchemeId;
//       u8 Distribution; varint fragment count N; varint min fragments; varint seed; u64 content
//       hash; varint length and scheme parameters; N+1 x (f32 NMSE, f32 max error, both rounded
//       up); varint number of the first points that are not exact; N x (varint offset, varint size,
//       u64 XXH3-64)
//     Tensors of equal content share their fragments.
//  3. fragments (fragment.h): always the next one of the tensor that is worst so far, so a file cut
//     off anywhere still holds every tensor at some quality, and all at about the same
//
// Fragments need no alignment: they are decoded, never used in place.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/fragment.h"
#include "holotensor/tensor.h"
#include "support/result.h"

namespace hologram::holotensor {

inline constexpr uint32_t kFileMagic = 0x544C4F48;  // "HOLT"
inline constexpr uint32_t kFileVersion = 2;         // 1 is the older HTNS format (htns.h)
inline constexpr size_t kFileHeaderSize = 64;
// Larger directories are refused before anything is allocated.
inline constexpr uint64_t kMaxDirectory = 48u << 20;

struct FileHeader {
  uint64_t file_size = 0;
  uint64_t directory_stored = 0;
  uint64_t directory_raw = 0;
  uint32_t tensor_count = 0;
  Codec directory_codec = Codec::none;
  uint64_t directory_hash = 0;
};

std::vector<std::byte> write_header(const FileHeader& header);
// `bytes` holds at least kFileHeaderSize. Checks magic, version, checksum and sizes.
Result<FileHeader> parse_header(std::span<const std::byte> bytes);

// Offsets of fragments count from the end of the directory here, whose size is not known yet;
// parse_directory() gives them from the start of the file.
std::vector<std::byte> write_directory(std::span<const TensorInfo> tensors);
// `stored` is the header's directory_stored bytes. Every field is checked: counts, ranges inside
// file_size, shapes that overflow, curves that are not numbers, ids that do not match.
Result<std::vector<TensorInfo>> parse_directory(const FileHeader& header,
                                                std::span<const std::byte> stored);

}  // namespace hologram::holotensor
