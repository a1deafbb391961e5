// Conversions between f32 and the element types HoloTensor reconstructs into, and the measuring of
// quality. Exact for every value that both sides can hold; round to nearest even otherwise.
#pragma once

#include <cstddef>
#include <span>

#include "holotensor/quality.h"
#include "support/dtype.h"
#include "support/result.h"

namespace hologram::holotensor {

// f32, f16, bf16, i8, u8, the fp8 types; also f64 and the integers (rounded to f32).
bool converts_to_f32(DType type);
// `from` holds to.size() elements of `type`.
Status to_f32(DType type, std::span<const std::byte> from, std::span<float> to);
// `to` holds from.size() elements. Integers saturate; NaN becomes 0 in them.
Status from_f32(std::span<const float> from, DType type, std::span<std::byte> to);

// Adds up squared errors with f64 sums; weights that are not finite are skipped.
struct ErrorSum {
  double squared_error = 0;
  double squared_value = 0;
  double max_error = 0;

  void add(std::span<const float> source, std::span<const float> reconstruction);
  void add(const ErrorSum& other);
  Quality quality(bool exact) const;
};

}  // namespace hologram::holotensor
