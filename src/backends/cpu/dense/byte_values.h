// Values of an image as unsigned bytes: saturate(round(value * factor) + zero). What convolutions
// by bytes need.
//
// Values come as pixels: runs of 16, `block` values from run to run of a pixel, `step` values from
// pixel to pixel; f32, or bf16 where said.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

inline constexpr size_t kByteRun = 16;

// The least and the largest of values and 0, as bits of f32: `high` compares as a signed number,
// `low` as an unsigned one (negative values are the larger the further down). What is not finite is
// beyond everything else.
struct ByteRange {
  uint32_t low = 0;
  int32_t high = 0;
  void include(const ByteRange& other) {
    low = std::max(low, other.low);
    high = std::max(high, other.high);
  }
};

// What values of a range are multiplied by to become bytes, the byte that stands for 0, and what a
// step of the bytes is worth: NaN where the range is not finite.
struct ByteScale {
  float factor = 0, zero = 0, back = 0;
  explicit ByteScale(const ByteRange& range);
};

struct BytePixels {
  const void* from = nullptr;
  bool bf16 = false;
  size_t block = 0, step = 0, pixels = 0, runs = 0;
  size_t count = 0;                                  // values of a pixel, the others are zeros
  const float *factors = nullptr, *zeros = nullptr;  // `scale_step` from pixel to pixel: 0 or 1
  size_t scale_step = 0;
  // Runs of all pixels in a row: four make a chunk of 64 bytes, `chunk` bytes from one to the next.
  uint8_t* to = nullptr;
  size_t chunk = 4 * kByteRun;
};

struct ByteSums {
  int32_t* sums = nullptr;  // [rows][width]; f32 in their place
  size_t rows = 0, width = 0;
  const float *backs = nullptr, *zeros = nullptr;  // of rows, `row_step` from one to the next
  size_t row_step = 0;
  const float* scales = nullptr;         // of columns
  const int32_t* column_sums = nullptr;  // of the weights of each
};

struct ByteFunctions {
  // The range of the first `count` (at most 16) values that start at each pixel, of all of them.
  ByteRange (*range)(const BytePixels& pixels, size_t count);
  // The range of all `count` values of each pixel.
  void (*ranges)(const BytePixels& pixels, ByteRange* each);
  void (*pixels)(const BytePixels&);
  // (sum - zero of the row * column_sum) * back * scale
  void (*scale)(const ByteSums&);
};
// For this CPU: by AVX-512, or plain loops.
ByteFunctions byte_functions();

}  // namespace hologram::backends::dense
