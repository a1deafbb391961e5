// Kernels read whole elements, so a tensor must lie at a multiple of its element's size. Memory of
// our own always does; views of protobuf files and callers' buffers may not.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/tensor.h"

namespace hologram::kernels {

inline bool is_aligned(const Tensor& tensor) {
  // A complex number is two real ones.
  const size_t parts =
      tensor.dtype == DType::complex64 || tensor.dtype == DType::complex128 ? 2 : 1;
  const size_t element =
      tensor.dtype == DType::string ? alignof(std::string) : size_of(tensor.dtype);
  return reinterpret_cast<uintptr_t>(tensor.data) % std::max<size_t>(1, element / parts) == 0;
}

// The tensor itself where its elements can be read, else a copy that can.
inline Result<Tensor> aligned(const Tensor& tensor) {
  if (is_aligned(tensor)) return tensor;
  return tensor.clone();
}

}  // namespace hologram::kernels
