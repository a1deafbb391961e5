// From f32 to 8-bit integers and to know their range.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

struct Range {
  float low = 0, high = 0;  // low <= 0 <= high
};
// The smallest and the largest of the values and 0; NaNs are passed over.
Range range_of(const float* values, size_t count);

// saturate(round_half_even(value / scale) + zero) to low..high, which lie in -128..127 or 0..255;
// the low byte of each. A NaN becomes `low`.
struct Quantizer {
  float scale = 1.0f;
  int32_t zero = 0, low = 0, high = 255;
};
void quantize(const Quantizer& quantizer, const float* values, size_t count, uint8_t* to);

// (value - zero) * scale
void dequantize(const uint8_t* values, size_t count, bool is_signed, float scale, int32_t zero,
                float* to);

}  // namespace hologram::backends::dense
