// exact_residual: what is missing between an estimate and the exact bits of a tensor.
//
// Elements are mapped to integers in the order of their values, so that a good estimate leaves a
// small difference whatever the element type. How large depends on the estimate's own exponent
// (an f32 near 1e-6 has more bits to go than one near 1), so differences are coded apart for each
// exponent, which the decoder knows from the estimate.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "support/dtype.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::holotensor {

// `source` holds estimate.size() elements of `type` (one that converts_to_f32).
Result<std::vector<std::byte>> encode_residual(DType type, std::span<const std::byte> source,
                                               std::span<const float> estimate, ThreadPool& pool);

// The reverse, with the same estimate to the bit; `out` holds estimate.size() elements. Damaged
// bytes or another estimate give an error or other elements: callers check the content hash.
Status decode_residual(DType type, std::span<const std::byte> coded,
                       std::span<const float> estimate, std::span<std::byte> out, ThreadPool& pool);

}  // namespace hologram::holotensor
