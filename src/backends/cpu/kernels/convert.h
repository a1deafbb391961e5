// Conversions of whole tensors between element types.
#pragma once

#include "backends/cpu/kernels/tensor.h"

namespace hologram::kernels {

// f16 or bf16 to f32 and back; both tensors have the same number of elements.
void convert_half_to_float(const Tensor& half, const Tensor& wide);
void convert_float_to_half(const Tensor& wide, const Tensor& half);

// Elements of less than a byte, one byte each (sign-extended for signed types; the raw bits for
// floats), and back. `count` elements.
void unpack_sub_byte(DType type, const std::byte* packed, int64_t count, uint8_t* unpacked);
void pack_sub_byte(DType type, const uint8_t* unpacked, int64_t count, std::byte* packed);

}  // namespace hologram::kernels
