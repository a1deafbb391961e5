// hologram.MatMulInteger: rows of 8-bit integers times one constant matrix of them, left as i32 or
// scaled to f32 and finished by an epilogue.
#include <algorithm>

#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {

namespace dense = backends::dense;

// Inputs A [..., k], B, a_zero?, b_zero? (i32, a value a column), scale?, bias?, residual?. With a
// scale (one, or a value a column) the result is f32.
Status fused_matmul_integer(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const int64_t k = c.integer("k"), n = c.integer("n");
  const bool packed = c.integer("packed") != 0;
  if (a.dims.rank() < 1 || k < 1 || n < 1 || n > kMostOfAMatrix || a.dims.back() != k)
    return fail(ErrorCode::shape_mismatch, "{} times {} x {}", a.dims.to_string(), k, n);
  const size_t bytes = dense::packed_b_int8_bytes(static_cast<size_t>(k), static_cast<size_t>(n));
  if (b.bytes() != (packed ? bytes : static_cast<uint64_t>(k * n)))
    return fail(ErrorCode::shape_mismatch, "a matrix of {} bytes for {} x {}", b.bytes(), k, n);
  const int64_t rows = a.count() / k;
  Dims dims = a.dims;
  dims[dims.rank() - 1] = n;
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (rows == 0) return {};
  dense::GemmInt8 g{.m = static_cast<size_t>(rows),
                    .n = static_cast<size_t>(n),
                    .k = static_cast<size_t>(k),
                    .a = a.data,
                    .lda = static_cast<size_t>(k),
                    .a_signed = a.dtype == DType::i8,
                    .packed_b = b.data,
                    .c = y.data,
                    .ldc = static_cast<size_t>(n)};
  if (!packed) {
    HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(bytes));
    dense::pack_b_int8(g.k, g.n, b.data, g.n, false, b.dtype == DType::i8, scratch.data());
    g.packed_b = scratch.data();
  }
  if (c.has_input(2)) {
    if (c.input(2).count() != 1)
      return fail(ErrorCode::shape_mismatch, "a zero point {}", c.input(2).dims.to_string());
    g.a_zero = g.a_signed ? *c.input(2).as<int8_t>() : *c.input(2).as<uint8_t>();
  }
  if (c.has_input(3)) {
    if (c.input(3).count() != n)
      return fail(ErrorCode::shape_mismatch, "zero points {}", c.input(3).dims.to_string());
    g.b_zeros = c.input(3).as<int32_t>();
  }
  if (c.has_input(4)) {
    const Tensor& scale = c.input(4);
    if (scale.count() != 1 && scale.count() != n)
      return fail(ErrorCode::shape_mismatch, "scales {}", scale.dims.to_string());
    g.scales = scale.as<float>();
    if (scale.count() != n) {
      HOLOGRAM_TRY(auto scales, c.scratch<float>(n));
      std::fill(scales.begin(), scales.end(), *scale.as<float>());
      g.scales = scales.data();
    }
    g.output = dense::Int8Output::f32;
    HOLOGRAM_TRY(g.epilogue, read_epilogue(c, 5, 6, n, y.count()));
  }
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_int8_scratch_bytes(g)));
  dense::gemm_int8(g, scratch.data(), c.threads());
  return {};
}

}  // namespace hologram::kernels
