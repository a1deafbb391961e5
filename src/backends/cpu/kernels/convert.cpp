#include "backends/cpu/kernels/convert.h"

#include <cstring>

namespace hologram::kernels {

void convert_half_to_float(const Tensor& half, const Tensor& wide) {
  const uint16_t* from = half.as<uint16_t>();
  float* to = wide.as<float>();
  const int64_t count = half.count();
  if (half.dtype == DType::bf16)
    for (int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(from[i]);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = f16_to_f32(from[i]);
}

void convert_float_to_half(const Tensor& wide, const Tensor& half) {
  const float* from = wide.as<float>();
  uint16_t* to = half.as<uint16_t>();
  const int64_t count = half.count();
  if (half.dtype == DType::bf16)
    for (int64_t i = 0; i < count; ++i) to[i] = f32_to_bf16(from[i]);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = f32_to_f16(from[i]);
}

void unpack_sub_byte(DType type, const std::byte* packed, int64_t count, uint8_t* unpacked) {
  const unsigned bits = bits_of(type), per_byte = 8 / bits, mask = (1u << bits) - 1;
  const bool is_signed = type == DType::i4 || type == DType::i2;
  const unsigned sign = 1u << (bits - 1);
  for (int64_t i = 0; i < count; ++i) {
    const unsigned byte = std::to_integer<unsigned>(packed[i / per_byte]);
    const unsigned value = (byte >> (i % per_byte * bits)) & mask;
    unpacked[i] = static_cast<uint8_t>(is_signed ? (value ^ sign) - sign : value);
  }
}

void pack_sub_byte(DType type, const uint8_t* unpacked, int64_t count, std::byte* packed) {
  const unsigned bits = bits_of(type), per_byte = 8 / bits, mask = (1u << bits) - 1;
  std::memset(packed, 0, bytes_for(type, count));
  for (int64_t i = 0; i < count; ++i)
    packed[i / per_byte] |= static_cast<std::byte>((unpacked[i] & mask) << (i % per_byte * bits));
}

}  // namespace hologram::kernels
