// f32 values as 16-bit integers whose products are added up in pairs (VNNI): what products by
// shorts share.
//
// Sixteen products are added up as an int32_t before they become f32. It has room for that: the
// norm (the root of the sum of squares) of the 16 values of a run is at most 46320 on either side,
// and no sum of products is larger than the product of the norms. Values that are drawn alike keep
// nearly all bits of an int16_t so: their largest is at 32767 when a norm is there.
//
// Values come as pixels: runs of 16 floats, `block` floats from run to run of a pixel, `step`
// floats from pixel to pixel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

inline constexpr size_t kShortRun = 16;
inline constexpr size_t kShortStep = 32;  // values of a chunk of units
inline constexpr float kShortNorm = 46320, kMostShort = 32767;

// What values are multiplied by to become integers, and products of those by to become values
// again.
struct ShortScale {
  float factor = 0, back = 0;
  // Of what an integer's unit has to be at least. Not finite: everything it touches becomes NaN.
  // Tiny: zeros.
  explicit ShortScale(float unit);
};

struct ShortPixels {
  const float* from = nullptr;
  size_t block = 0, step = 0, pixels = 0;
  size_t count = 0;  // of a pixel's values: others are zeros
};

// The integers of `runs` runs of each pixel, those of all pixels in a row: two runs make a chunk of
// 64 bytes, `chunk` bytes from one to the next.
struct ShortRuns {
  ShortPixels values;
  size_t runs = 0;
  const float* factors = nullptr;  // `factor_step` from pixel to pixel: 0 or 1
  size_t factor_step = 0;
  int16_t* to = nullptr;
  size_t chunk = 64;
};

struct ShortFunctions {
  // Of each pixel, what the unit of its integers has to be for its runs and values to fit.
  void (*units)(const ShortPixels&, float* units);
  void (*runs)(const ShortRuns&);
  // sums * row_scales[row * row_step] * scales[column], in place.
  void (*scale)(float* sums, size_t rows, size_t width, const float* row_scales, size_t row_step,
                const float* scales);
};

// For this CPU: by AVX-512 where it has it, or plain loops.
ShortFunctions short_functions();
namespace detail {
ShortFunctions avx512_shorts();
// Of one pixel, also where f32 does not hold squares.
float careful_unit(const ShortPixels&);
}  // namespace detail

}  // namespace hologram::backends::dense
