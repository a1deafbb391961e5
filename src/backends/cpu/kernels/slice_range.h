// The elements that a slice takes from one axis, as ONNX and NumPy count them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "support/result.h"

namespace hologram::kernels {

struct SliceRange {
  int64_t start, count, step;
};

inline Result<SliceRange> slice_range(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (step == 0) return fail(ErrorCode::invalid_argument, "a slice with step 0");
  // Backwards, -1 is a valid end: before the first element.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  auto bound = [&](int64_t v) { return std::clamp(v < 0 ? v + size : v, low, high); };
  start = bound(start);
  end = bound(end);
  const int64_t distance = step > 0 ? end - start : start - end;
  if (distance <= 0) return SliceRange{0, 0, 1};
  // |step| as an unsigned number: the smallest integer has no positive of its own type.
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  return SliceRange{start, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1,
                    step};
}

}  // namespace hologram::kernels
