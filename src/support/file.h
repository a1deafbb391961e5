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
  friend class OpenFile;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file open for reading: a little of it is read in a fraction of the time that a map and its
// first page take, and all of it can still be mapped later. Movable; closed on destruction.
class OpenFile {
 public:
  OpenFile() = default;
  static Result<OpenFile> open(const std::filesystem::path& path);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), size_(std::exchange(other.size_, 0)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(size_, other.size_);
    return *this;
  }

  bool is_open() const { return descriptor_ >= 0; }
  size_t size() const { return size_; }  // when it was opened
  // Fills `bytes` from `offset` on; io_error where the file ends before.
  Status read(uint64_t offset, std::span<std::byte> bytes) const;
  // io_error where the file has another size by now.
  Result<FileMap> map() const;

 private:
  int descriptor_ = -1;
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
