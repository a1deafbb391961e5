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

// Sums of `rows` pixels (rows `width` floats apart) through bias, residual and a clip, into blocks
// of 16 channels stored as bf16.
struct DirectRun {
  const float* sums = nullptr;
  size_t rows = 0, columns = 0, width = 0;  // whole blocks of columns
  const float* bias = nullptr;              // `columns` values, or null
  const uint16_t* residual = nullptr;       // lies as the output does, or null
  float low = 0.0f, high = 0.0f;            // an infinite range clips nothing
  // max(least, clip(max(slope * x, x)) * scale + shift), by avx512_bf16_finish_more.
  float slope = 1.0f, scale = 1.0f, shift = 0.0f, least = 0.0f;
  uint16_t* to = nullptr;
  ptrdiff_t block = 0;  // values from block to block of channels
};

// Pixels of one block of 16 channels, stored as bf16: a clip of x * scale + shift.
struct ScaleRun {
  const uint16_t* from = nullptr;
  size_t pixels = 0;
  const float* scale = nullptr;  // a value a channel, as shift
  const float* shift = nullptr;
  float low = 0.0f, high = 0.0f;  // an infinite range clips nothing
  uint16_t* to = nullptr;
};

namespace detail {
// By AVX512_BF16; null where the CPU lacks it.
using FinishFunction = void (*)(const DirectRun&);
FinishFunction avx512_bf16_finish();
FinishFunction avx512_bf16_finish_more();
FinishFunction avx512_bf16_finish_silu();  // x * sigmoid(x) in place of the clip
using ScaleFunction = void (*)(const ScaleRun&);
ScaleFunction avx512_bf16_scale();
using NarrowFunction = void (*)(const float*, size_t, uint16_t*);
NarrowFunction avx512_bf16_narrow();
NarrowFunction avx512_bf16_narrow_silu();  // of x * sigmoid(x), as exactly as bf16 shows
}  // namespace detail

}  // namespace hologram::backends::dense
