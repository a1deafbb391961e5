// hologram.MatMul: rows of any tensor times one matrix, with its epilogue.
#include <cmath>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/gemm_half.h"
#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/quantize.h"
#include "backends/cpu/kernels/fused.h"
#include "backends/cpu/kernels/saturate.h"

namespace hologram::kernels {

namespace dense = backends::dense;

namespace {

dense::Bf16Parts parts_named(int64_t parts) {
  return parts == 2 ? dense::Bf16Parts::two : dense::Bf16Parts::one;
}

// Operands as bf16, of one part or two.
Status narrow_matmul(KernelContext& c, const dense::Gemm& g, const Tensor& b, int64_t parts) {
  const dense::GemmBf16 narrow{.m = g.m,
                               .n = g.n,
                               .k = g.k,
                               .a = g.a,
                               .lda = g.lda,
                               .parts = parts_named(parts),
                               .packed_b = b.data,
                               .c = g.c,
                               .ldc = g.ldc,
                               .epilogue = g.epilogue};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_bf16_scratch_bytes(narrow)));
  dense::gemm_bf16(narrow, scratch.data(), c.threads());
  return {};
}

// Operands as 16-bit integers of two digits.
Status digits_matmul(KernelContext& c, const dense::Gemm& g, const Tensor& b) {
  const dense::GemmDigits narrow{.m = g.m,
                                 .n = g.n,
                                 .k = g.k,
                                 .a = g.a,
                                 .lda = g.lda,
                                 .packed_b = b.data,
                                 .c = g.c,
                                 .ldc = g.ldc,
                                 .epilogue = g.epilogue};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_digits_scratch_bytes(narrow)));
  dense::gemm_digits(narrow, scratch.data(), c.threads());
  return {};
}

// Operands as 16-bit integers.
Status shorts_matmul(KernelContext& c, const dense::Gemm& g, const Tensor& b) {
  const dense::GemmShorts narrow{.m = g.m,
                                 .n = g.n,
                                 .k = g.k,
                                 .a = g.a,
                                 .lda = g.lda,
                                 .packed_b = b.data,
                                 .c = g.c,
                                 .ldc = g.ldc,
                                 .epilogue = g.epilogue};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_shorts_scratch_bytes(narrow)));
  dense::gemm_shorts(narrow, scratch.data(), c.threads());
  return {};
}

// B as codes of 4, 8 or 16 bits.
Status quantised_matmul(KernelContext& c, const dense::Gemm& g, const Tensor& b) {
  const int64_t bits = c.integer("bits"), group = c.integer("group");
  if ((bits != 4 && bits != 8 && bits != 16) || group < 0 || (bits == 4 && group % 8 != 0) ||
      (bits == 16 && c.integer("zeros") != 0) || c.integer("packed") == 0)
    return fail(ErrorCode::unsupported, "weights of {} bits in groups of {}", bits, group);
  const dense::GemmBits narrow{.m = g.m,
                               .form = {.k = g.k,
                                        .n = g.n,
                                        .bits = static_cast<unsigned>(bits),
                                        .group = static_cast<size_t>(group),
                                        .zeros = c.integer("zeros") != 0},
                               .a = g.a,
                               .lda = g.lda,
                               .packed_b = b.data,
                               .c = g.c,
                               .ldc = g.ldc,
                               .epilogue = g.epilogue};
  if (b.bytes() != dense::packed_b_bits_bytes(narrow.form))
    return fail(ErrorCode::shape_mismatch, "a matrix of {} bytes for {} x {} of {} bits", b.bytes(),
                g.k, g.n, bits);
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_bits_scratch_bytes(narrow)));
  dense::gemm_bits(narrow, scratch.data(), c.threads());
  return {};
}

// Both operands as 8-bit integers: rows of A by a scale and a zero point of their own, which makes
// a row's result independent of the others.
Status dynamic_matmul(KernelContext& c, const dense::Gemm& g, const Tensor& b) {
  if (c.integer("packed") == 0 || b.bytes() != dense::packed_b_int8_bytes(g.k, g.n) ||
      !c.has_input(4) || c.input(4).count() != static_cast<int64_t>(g.n))
    return fail(ErrorCode::shape_mismatch, "{} bytes of 8-bit weights for {} x {}", b.bytes(), g.k,
                g.n);
  const dense::GemmInt8 narrow{.m = g.m,
                               .n = g.n,
                               .k = g.k,
                               .lda = g.lda,
                               .values = g.a,
                               .packed_b = b.data,
                               .output = dense::Int8Output::f32,
                               .c = g.c,
                               .ldc = g.ldc,
                               .scales = c.input(4).as<float>(),
                               .epilogue = g.epilogue};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_int8_scratch_bytes(narrow)));
  dense::gemm_int8(narrow, scratch.data(), c.threads());
  return {};
}

Status half_matmul(KernelContext& c, const dense::Gemm& g, const Tensor& b) {
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_half_scratch_bytes(g)));
  dense::gemm_half(g, b.as<uint16_t>(), scratch.data(), c.threads());
  return {};
}

uint64_t matrix_bytes(size_t k, size_t n, bool packed, int64_t parts, int64_t digits, bool half) {
  if (digits == 1) return dense::packed_b_shorts_bytes(k, n);
  if (digits == 2) return dense::packed_b_digits_bytes(k, n);
  if (parts != 0) return dense::packed_b_bf16_bytes(k, n, parts_named(parts));
  return packed ? dense::packed_b_bytes(k, n) / (half ? 2 : 1) : uint64_t{k} * n * sizeof(float);
}

// A plan may name any numbers.
bool have_elements(const Dims& dims, int64_t wanted) {
  return dims.are_possible() && dims.count() == wanted;
}

}  // namespace

// Inputs A [..., k], B, bias?, residual?. B is k x n, n x k when `transposed`, or packed; packed as
// `parts` bf16 values an element, as two `digits` an element or one of 16 `digit_bits` or as codes
// of `bits` bits where that is not 0, or as f16. The result has A's shape with n last, or `shape`
// where given.
Status fused_matmul(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const int64_t k = c.integer("k"), n = c.integer("n");
  const int64_t parts = c.integer("parts");
  const bool packed = c.integer("packed") != 0, transposed = c.integer("transposed") != 0;
  if (a.dims.rank() < 1 || k < 1 || n < 1 || k > kMostOfAMatrix || n > kMostOfAMatrix ||
      a.count() % k != 0)
    return fail(ErrorCode::shape_mismatch, "{} times {} x {}", a.dims.to_string(), k, n);
  const int64_t rows = a.count() / k;
  Dims dims(c.integers("shape"));
  if (!c.attributes().has("shape")) {
    if (a.dims.back() != k)
      return fail(ErrorCode::shape_mismatch, "{} times {} x {}", a.dims.to_string(), k, n);
    dims = a.dims;
    dims[dims.rank() - 1] = n;
  } else if (!have_elements(dims, rows * n)) {
    return fail(ErrorCode::shape_mismatch, "{} rows of {} do not fill {}", rows, n,
                dims.to_string());
  }
  const bool codes = c.integer("bits") != 0, half = b.dtype == DType::f16;
  const int64_t digits = c.integer("digits"), digit_bits = c.integer("digit_bits");
  const bool shorts = digits == 1 && digit_bits == 16;
  if (!shorts && ((digits != 0 && digits != 2) || digit_bits != 0))
    return fail(ErrorCode::unsupported, "no product of {} digits of {} bits", digits, digit_bits);
  if (parts < 0 || parts > 2 || ((parts != 0 || digits != 0) && (!packed || half)) ||
      (half && !packed))
    return fail(ErrorCode::unsupported, "a product of {} parts", parts);
  if (!codes && b.bytes() != matrix_bytes(k, n, packed, parts, digits, half))
    return fail(ErrorCode::shape_mismatch, "a matrix of {} bytes; {} x {} expected", b.bytes(), k,
                n);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (rows == 0) return {};
  dense::Gemm g{.m = static_cast<size_t>(rows),
                .n = static_cast<size_t>(n),
                .k = static_cast<size_t>(k),
                .a = a.as<float>(),
                .lda = static_cast<size_t>(k),
                .packed_b = packed && parts == 0 && digits == 0 && !half ? b.as<float>() : nullptr,
                .b = packed ? nullptr : b.as<float>(),
                .ldb = static_cast<size_t>(transposed ? k : n),
                .b_transposed = transposed,
                .c = y.as<float>(),
                .ldc = static_cast<size_t>(n)};
  HOLOGRAM_TRY(g.epilogue, read_epilogue(c, 2, 3, n, y.count()));
  g.epilogue.alpha = static_cast<float>(c.number("alpha", 1));
  if (codes) return c.integer("dynamic") != 0 ? dynamic_matmul(c, g, b) : quantised_matmul(c, g, b);
  if (digits != 0) return shorts ? shorts_matmul(c, g, b) : digits_matmul(c, g, b);
  if (parts != 0) return narrow_matmul(c, g, b, parts);
  if (half) return half_matmul(c, g, b);
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_scratch_bytes(g)));
  dense::gemm(g, scratch.data(), c.threads());
  return {};
}

}  // namespace hologram::kernels
