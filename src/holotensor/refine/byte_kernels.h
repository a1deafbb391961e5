// Kernels over elements of one byte: their codes straight from all of their planes, without
// carriers. They work on one group of kGroup elements; an element outside the live ones, whose
// planes and sign are zero, becomes the code of +0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "holotensor/refine/number_format.h"
#include "holotensor/refine/small_float.h"

namespace hologram::holotensor::refine {

// i8, or with `flip` = 0x80 u8. `planes`: at most 7, `stride` words from one to the next.
void integer_codes(const uint64_t* planes, size_t stride, unsigned count, const uint64_t* negative,
                   uint8_t flip, std::byte* out);

// fp8. At most 16 planes. What comes out for magnitudes that are no numbers of the type, as those
// of elements which the tail completes, means nothing.
void small_float_codes(const SmallFloat& format, const Window& window, const uint64_t* planes,
                       size_t stride, const uint64_t* negative, std::byte* out);

}  // namespace hologram::holotensor::refine
