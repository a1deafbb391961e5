// CodeMap: native code in memory that is executable and not writable.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "support/result.h"

namespace hologram::backends {

// Movable; unmapped on destruction. Memory is written first and made executable after; at no time
// is it both.
class CodeMap {
 public:
  CodeMap() = default;
  // unsupported where the system has no executable memory, permission_denied where it forbids it.
  static Result<CodeMap> map(std::span<const std::byte> code);
  ~CodeMap();
  CodeMap(CodeMap&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  CodeMap& operator=(CodeMap&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  const std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hologram::backends
