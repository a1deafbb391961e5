// Layout: how several tensors of one shape are walked together with as few dimensions as possible.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/dims.h"

namespace hologram::runtime {

// The strides that show the same elements in the shape `to`, if some do; no copying is needed then.
std::optional<Dims> reshaped_strides(const Dims& from, const Dims& from_strides, const Dims& to);

// Up to four operands over one index space.
struct Walk {
  static constexpr size_t kMaxOperands = 4;

  Dims dims;                               // outermost first; never empty, no 1s unless alone
  std::array<Dims, kMaxOperands> strides;  // an operand's, in elements
};

// Drops dimensions of 1 and joins neighbours that every operand walks as one. `dims` has no zeros.
Walk collapse(const Dims& dims, std::span<const Dims* const> strides);

}  // namespace hologram::runtime
