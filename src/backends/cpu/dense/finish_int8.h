// From exact sums of 8-bit products to 8-bit results in one pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/epilogue.h"
#include "backends/cpu/dense/quantize.h"

namespace hologram::backends::dense {

// The clip and the zero point that all columns share. Rounding keeps order: a clip of the values is
// one of the codes, less the zero point.
struct Int8Codes {
  // Added to a small number, this leaves the nearest integer in its last bits, even at a tie.
  static constexpr float kMagic = 12582912.0f;
  float least = 0, most = 0;
  int32_t offset = 0;  // from those bits to the code
  bool is_signed = false;

  Int8Codes() = default;
  Int8Codes(const Quantizer& q, float low, float high)
      : least(std::max(std::nearbyint(low / q.scale), static_cast<float>(q.low - q.zero))),
        most(std::min(std::nearbyint(high / q.scale), static_cast<float>(q.high - q.zero))),
        offset(0x4B400000 - q.zero),
        is_signed(q.low < 0) {}
};

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
  Int8Codes codes;
  uint8_t* to = nullptr;
  size_t to_row = 0;
};
void finish_int8_bytes(const Int8Bytes& finish, const int32_t* sums);

// Whether the epilogue and then the quantizer are no more than that, and `codes` for it.
bool finishes_int8_bytes(const Epilogue& epilogue, const Quantizer& quantizer, Int8Codes& codes);

}  // namespace hologram::backends::dense
