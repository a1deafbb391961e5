// AlignedBytes: owned, 64-byte aligned memory (a cache line, and the widest vector).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "support/result.h"

namespace hologram {

inline constexpr size_t kAlignment = 64;

constexpr uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Uninitialised bytes; resource_exhausted when there is no memory. Large blocks ask for huge
  // pages.
  static Result<AlignedBytes> allocate(size_t size);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBytes& operator=(AlignedBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hologram
