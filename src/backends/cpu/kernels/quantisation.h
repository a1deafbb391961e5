// What the kernels of the quantisation family share, and those that have files of their own.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// The elements of a tensor of any number type up to 32 bits, as f32: the tensor's own memory where
// it is f32, else scratch.
Result<std::span<const float>> as_floats(KernelContext& c, const Tensor& tensor);

// Writes numbers in a quantised type: `values` are already divided by the scale.
class QuantisedWriter {
 public:
  // `bytes` is where elements of less than a byte go, one byte each.
  QuantisedWriter(const Tensor& out, uint8_t* bytes, bool saturate);
  // Rounds to nearest even, adds the zero point, and stops at the type's limits.
  void write(int64_t index, float value, float zero_point) const;

 private:
  DType type_;
  std::byte* data_;
  bool saturate_, is_integer_;
  double low_ = 0, high_ = 0;
};

Status matmul_integer(KernelContext& c);
Status qlinear_matmul(KernelContext& c);
Status conv_integer(KernelContext& c);
Status qlinear_conv(KernelContext& c);

}  // namespace hologram::kernels
