// RandomAccess: the bytes of a file, wherever they lie.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "holotensor/tensor.h"
#include "support/result.h"

namespace hologram::holotensor {

// Thread-safe.
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; fails when that passes the end.
  virtual Status read(uint64_t offset, std::span<std::byte> out) = 0;
};

// Reads with pread: no map, so a file cut off while open is an error, not a signal.
Result<std::shared_ptr<RandomAccess>> open_file(const std::filesystem::path& path);
std::shared_ptr<RandomAccess> memory_source(SharedBytes bytes);

}  // namespace hologram::holotensor
