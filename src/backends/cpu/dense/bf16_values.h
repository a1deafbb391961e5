// Values stored as bf16 between two steps: the upper halves of f32, to nearest, ties to even.
//
// Pointers are borrowed and need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

void narrow_values(const float* from, size_t count, uint16_t* to);
void widen_values(const uint16_t* from, size_t count, float* to);

// `pixels` chunks of 16 units, as split_pixels makes them of f32: each of 16 values of `first` and
// 16 of `second` (null: zeros) that lie `step` values after those of the chunk before. Of each 32
// the first `count` are used, the others are zeros.
void join_pixels(const uint16_t* first, const uint16_t* second, size_t pixels, size_t step,
                 size_t count, uint32_t* units);

namespace detail {
// By AVX512_BF16; null where the CPU lacks it.
using NarrowFunction = void (*)(const float*, size_t, uint16_t*);
NarrowFunction avx512_bf16_narrow();
}  // namespace detail

}  // namespace hologram::backends::dense
