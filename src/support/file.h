// Files: read-only maps, whole-file reads, and writes that are either complete or not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.h"

namespace hologram {

// A whole file, mapped read-only and shared. Movable; unmapped on destruction.
class FileMap {
 public:
  FileMap() = default;
  static Result<FileMap> open(const std::filesystem::path& path);
  // Also copies the file's first bytes to `head`, all or as many as fit, and shortens it to them:
  // to read a little that way takes less than to bring in the first page of a map.
  static Result<FileMap> open(const std::filesystem::path& path, std::span<std::byte>& head);
  ~FileMap();
  FileMap(FileMap&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  FileMap& operator=(FileMap&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

Result<std::vector<std::byte>> read_file(const std::filesystem::path& path);
Result<std::string> read_text_file(const std::filesystem::path& path);

// Written to a temporary name beside `path`, flushed, then renamed: readers see all of it or none.
Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
Status write_file(const std::filesystem::path& path, std::string_view text);

// The same guarantee for a file written in pieces. Without commit() nothing is left behind.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::filesystem::path& path);
  ~FileWriter();
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;

  Status write(std::span<const std::byte> bytes);
  // Overwrites earlier bytes, for headers that are known last.
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t position() const { return position_; }
  Status commit();

 private:
  FileWriter() = default;
  int descriptor_ = -1;
  uint64_t position_ = 0;
  std::filesystem::path path_;
  std::filesystem::path temporary_;
};

}  // namespace hologram
