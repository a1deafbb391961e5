// From exact sums of 8-bit products to 8-bit results in one pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "backends/cpu/dense/quantize.h"

namespace hologram::backends::dense {

// to[r][j] = quantize(clip(scale[j] * (sum[r][j] + base[j] - row_sum[r] * zero[j]) + bias[j])).
// Arrays over columns are padded to whole vectors of 16; scales and biases are divided by the
// quantizer's scale already.
struct Int8Bytes {
  size_t rows = 1, width = 0, columns = 0;  // sums: [rows][width], of which `columns` are wanted
  const int32_t* base = nullptr;
  const int32_t* zeros = nullptr;     // null: all 0
  const int32_t* row_sums = nullptr;  // with zeros
  const float* scales = nullptr;
  const float* biases = nullptr;  // null: all 0
  float low = -HUGE_VALF, high = HUGE_VALF;
  Quantizer quantizer;
  uint8_t* to = nullptr;
  size_t to_row = 0;
};
void finish_int8_bytes(const Int8Bytes& finish, const int32_t* sums);

// Whether the epilogue is no more than that, and its clip.
bool finishes_int8_bytes(const Epilogue& epilogue, Int8Bytes& finish);

}  // namespace hologram::backends::dense
