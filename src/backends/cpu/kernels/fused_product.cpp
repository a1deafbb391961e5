// hologram.MatMul: rows of any tensor times one matrix, with its epilogue.
#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/kernels/fused.h"

namespace hologram::kernels {

namespace dense = backends::dense;

// Inputs A [..., k], B, bias?, residual?. B is k x n, n x k when `transposed`, or packed. The
// result has A's shape with n last, or `shape` where given.
Status fused_matmul(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  const int64_t k = c.integer("k"), n = c.integer("n");
  const bool packed = c.integer("packed") != 0, transposed = c.integer("transposed") != 0;
  if (a.dims.rank() < 1 || k < 1 || n < 1 || a.count() % k != 0)
    return fail(ErrorCode::shape_mismatch, "{} times {} x {}", a.dims.to_string(), k, n);
  const int64_t rows = a.count() / k;
  Dims dims(c.integers("shape"));
  if (!c.attributes().has("shape")) {
    if (a.dims.back() != k)
      return fail(ErrorCode::shape_mismatch, "{} times {} x {}", a.dims.to_string(), k, n);
    dims = a.dims;
    dims[dims.rank() - 1] = n;
  } else if (dims.count() != rows * n) {
    return fail(ErrorCode::shape_mismatch, "{} rows of {} do not fill {}", rows, n,
                dims.to_string());
  }
  const uint64_t b_bytes = packed ? dense::packed_b_bytes(k, n) : uint64_t(k) * n * sizeof(float);
  if (b.bytes() != b_bytes)
    return fail(ErrorCode::shape_mismatch, "a matrix of {} bytes; {} x {} expected", b.bytes(), k,
                n);
  HOLOGRAM_TRY(Tensor y, c.output(0, dims));
  if (rows == 0) return {};
  dense::Gemm g{.m = static_cast<size_t>(rows),
                .n = static_cast<size_t>(n),
                .k = static_cast<size_t>(k),
                .a = a.as<float>(),
                .lda = static_cast<size_t>(k),
                .packed_b = packed ? b.as<float>() : nullptr,
                .b = packed ? nullptr : b.as<float>(),
                .ldb = static_cast<size_t>(transposed ? k : n),
                .b_transposed = transposed,
                .c = y.as<float>(),
                .ldc = static_cast<size_t>(n)};
  HOLOGRAM_TRY(g.epilogue, read_epilogue(c, 2, 3, n, y.count()));
  g.epilogue.alpha = static_cast<float>(c.number("alpha", 1));
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_scratch_bytes(g)));
  dense::gemm(g, scratch.data(), c.threads());
  return {};
}

}  // namespace hologram::kernels
