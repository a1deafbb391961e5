// safetensors: reading and writing the common file of model weights.
//
//  1. u64 size of the header (little-endian), at most kMaxSafetensorsHeader
//  2. header: a JSON object {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [b, e]},
//  ...,
//     "__metadata__": {"key": "text", ...}}, padded with spaces
//  3. the tensors' bytes; offsets count from here, cover it without gaps and do not overlap
//
// Only the header is held in memory; tensors are read when asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holotensor/random_access.h"
#include "support/dtype.h"
#include "support/file.h"
#include "support/result.h"

namespace hologram::holotensor {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // the format's own limit

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // of the first byte in the file
  uint64_t size = 0;
};
using SafetensorsMetadata = std::map<std::string, std::string>;

// Const after opening: any thread may read.
class SafetensorsReader {
 public:
  // Checks everything: JSON, types, shapes against sizes, gaps and overlaps, names that repeat.
  static Result<SafetensorsReader> open(const std::filesystem::path& path);
  static Result<SafetensorsReader> open(std::shared_ptr<RandomAccess> source);

  // In the order of the data.
  const std::vector<SafetensorsEntry>& tensors() const { return tensors_; }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  Result<std::vector<std::byte>> read(const SafetensorsEntry& entry) const;
  // A part of it, from a byte of the tensor on.
  Status read(const SafetensorsEntry& entry, uint64_t offset, std::span<std::byte> out) const;

 private:
  std::shared_ptr<RandomAccess> source_;
  std::vector<SafetensorsEntry> tensors_;
  SafetensorsMetadata metadata_;
};

// What a file will hold is said first, then the bytes follow in that order. Not thread-safe.
class SafetensorsWriter {
 public:
  // Only name, dtype and shape of the entries are read. Fails on types the format does not have.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                          std::vector<SafetensorsEntry> entries,
                                          const SafetensorsMetadata& metadata = {});
  // The next tensor, whole or in pieces.
  Status write(std::span<const std::byte> bytes);
  // Fails unless every byte was written. Without it nothing is left behind.
  Status finish();

 private:
  SafetensorsWriter(FileWriter file, uint64_t missing)
      : file_(std::move(file)), missing_(missing) {}
  FileWriter file_;
  uint64_t missing_;
};

// "BF16" and back.
Result<DType> dtype_from_safetensors(std::string_view name);
Result<std::string_view> safetensors_name(DType type);

}  // namespace hologram::holotensor
