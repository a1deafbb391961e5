// The decoder of the classical schemes; see classical_scheme.h for what it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "holotensor/classical/transform.h"
#include "holotensor/scheme.h"

namespace hologram::holotensor {

inline constexpr uint8_t kClassicalVersion = 1;

Result<std::unique_ptr<SchemeDecoder>> make_classical_decoder(const Transform& transform,
                                                              const TensorInfo& info);

// Which elements a fragment carries the residual of.
struct ElementRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};
ElementRange residual_range(size_t elements, size_t fragments, size_t fragment);

// Times 2^exponent.
void unscale(std::span<float> values, int exponent, ThreadPool& pool);

}  // namespace hologram::holotensor
