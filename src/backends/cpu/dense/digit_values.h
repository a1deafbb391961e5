// f32 values as 16-bit integers of two signed 8-bit digits: value * factor is near
// 256 * upper + lower. What products by digits share.
//
// Values come as pixels: runs of 16 floats, `block` floats from run to run of a pixel, `step`
// floats from pixel to pixel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

inline constexpr size_t kDigitRun = 16;
// More terms could leave the 32 bits of a sum.
inline constexpr size_t kMostDigitTerms = 65536;

// What values are multiplied by to become integers, and products of those by to become values
// again (their sums are 1/256 of them, which is shared by both sides).
struct DigitScale {
  float factor = 0, back = 0;
  // Of the largest magnitude of what has this scale, as bits of an f32. Not finite: everything it
  // touches becomes NaN. Tiny: zeros.
  explicit DigitScale(int32_t largest);
};

// The digits of `runs` runs of each pixel, one byte each, runs of all pixels in a row: four make a
// chunk of 64 bytes, `chunk` bytes from one to the next. Of a pixel's values the first `count` are
// used, the others are zeros.
struct DigitPixels {
  const float* from = nullptr;
  size_t block = 0, step = 0, pixels = 0, runs = 0, count = 0;
  const float* factors = nullptr;  // `factor_step` from pixel to pixel: 0 or 1
  size_t factor_step = 0;
  uint8_t *upper = nullptr, *lower = nullptr;
  size_t chunk = 4 * kDigitRun;
};

struct DigitFunctions {
  // The largest magnitudes, as bits of an f32: those of the first `count` (at most 16) floats that
  // start at each pixel, added to most[p * most_step ..], which is 0 or 16.
  void (*collect)(const float* from, size_t step, size_t pixels, size_t count, int32_t* most,
                  size_t most_step);
  int32_t (*most)(const int32_t* most);  // the largest of 16 collected ones
  void (*pixels)(const DigitPixels&);
  // What the two sums of each result (see kDigitSums) stand for, 256 times the first and the
  // second, times row_scales[row * row_step] times the scales of columns: f32 in place of the
  // first.
  void (*scale)(void* sums, size_t rows, size_t width, const float* row_scales, size_t row_step,
                const float* scales);
};

// For this CPU: by AVX-512, which all have that have tiles, or plain loops for those that only run
// what others compiled.
DigitFunctions digit_functions();
namespace detail {
DigitFunctions avx512_digits();
}  // namespace detail

}  // namespace hologram::backends::dense
