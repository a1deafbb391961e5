// NumPy's .npy files: one array, with its type and shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/dtype.h"
#include "support/result.h"

namespace hologram {

// An array in host memory, elements packed in C order. NumPy has no bf16: it is stored as two
// opaque bytes an element ("V2"), as the ml_dtypes package does, and read back so.
struct NpyArray {
  DType type = DType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  uint64_t element_count() const;
};

// Versions 1 to 3, either byte order, C or Fortran order (turned into C order).
Result<NpyArray> parse_npy(std::span<const std::byte> file);
Result<NpyArray> read_npy(const std::filesystem::path& path);

// The bytes of a version 1 file. Types NumPy cannot hold (4-bit, 8-bit floats, strings) are
// refused.
Result<std::vector<std::byte>> format_npy(DType type, std::span<const int64_t> shape,
                                          std::span<const std::byte> data);
Status write_npy(const std::filesystem::path& path, const NpyArray& array);

}  // namespace hologram
