// Products of matrices.
#include "backends/cpu/kernels/linear_algebra.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/families.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/pointwise.h"
#include "backends/cpu/kernels/saturate.h"
#include "backends/cpu/kernels/wrapping.h"

namespace hologram::kernels {
namespace {

Dims leading(const Dims& dims) { return Dims(std::span(dims.begin(), dims.rank() - 2)); }

// Strides in elements of an operand's matrices of `size` over the axes of the result's batch; 0
// where the operand is broadcast.
void batch_strides(const Dims& batch, const Dims& own, int64_t size, size_t* strides) {
  const Dims steps = own.strides();
  const size_t shift = batch.rank() - own.rank();
  for (size_t axis = 0; axis < batch.rank(); ++axis)
    strides[axis] = axis < shift || own[axis - shift] == 1
                        ? 0
                        : static_cast<size_t>(steps[axis - shift] * size);
}

Status matmul_dense(KernelContext& c, const Dims& batch, const Dims& outer_a, const Dims& outer_b,
                    int64_t m, int64_t n, int64_t k, const Tensor& out) {
  namespace dense = backends::dense;
  size_t dims[kMaxRank], a[kMaxRank], b[kMaxRank], y[kMaxRank];
  const size_t rank = batch.rank();
  std::ranges::copy(batch, dims);
  batch_strides(batch, outer_a, m * k, a);
  batch_strides(batch, outer_b, k * n, b);
  batch_strides(batch, batch, m * n, y);
  const dense::GemmBatch product{.item = {.m = static_cast<size_t>(m),
                                          .n = static_cast<size_t>(n),
                                          .k = static_cast<size_t>(k),
                                          .a = c.input(0).as<float>(),
                                          .lda = static_cast<size_t>(k),
                                          .b = c.input(1).as<float>(),
                                          .ldb = static_cast<size_t>(n),
                                          .c = out.as<float>(),
                                          .ldc = static_cast<size_t>(n),
                                          .ordered = c.integer("ordered") != 0},
                                 .dims = {dims, rank},
                                 .a_strides = {a, rank},
                                 .b_strides = {b, rank},
                                 .c_strides = {y, rank}};
  HOLOGRAM_TRY(auto scratch, c.scratch<std::byte>(dense::gemm_batch_scratch_bytes(product)));
  dense::gemm_batch(product, scratch.data(), c.threads());
  return {};
}

Status matmul(KernelContext& c) {
  Dims a = c.input(0).dims, b = c.input(1).dims;
  if (a.rank() == 0 || b.rank() == 0) return fail(ErrorCode::shape_mismatch, "a scalar operand");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a.insert(0, 1);
  if (column) b.push_back(1);
  const int64_t m = a[a.rank() - 2], k = a.back(), n = b.back();
  if (b[b.rank() - 2] != k)
    return fail(ErrorCode::shape_mismatch, "{} and {} do not multiply", c.input(0).dims.to_string(),
                c.input(1).dims.to_string());
  HOLOGRAM_TRY(const Dims batch, broadcast_dims(leading(a), leading(b)));
  Dims dims = batch;
  if (!row) dims.push_back(m);
  if (!column) dims.push_back(n);
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));

  if (out.dtype == DType::f32 && out.count() > 0 && k > 0) {
    // Many matrices times the same one are one tall matrix times it.
    if (leading(b).count() == 1 && leading(a).count() == batch.count())
      return matmul_dense(c, {}, {}, {}, batch.count() * m, n, k, out);
    return matmul_dense(c, batch, leading(a), leading(b), m, n, k, out);
  }

  if (out.count() == 0) return {};
  // The offset of each operand's matrix for every matrix of the result.
  auto offset = [&](const Dims& own, int64_t index) {
    const Dims strides = own.strides();
    int64_t result = 0;
    for (size_t axis = batch.rank(); axis-- > 0; index /= batch[axis]) {
      const size_t shift = batch.rank() - own.rank();
      if (axis >= shift && own[axis - shift] != 1)
        result += index % batch[axis] * strides[axis - shift];
    }
    return result;
  };
  const Dims outer_a = leading(a), outer_b = leading(b);
  return dispatch_number(out.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < batch.count(); ++i)
      gemm<T>({.m = m,
               .n = n,
               .k = k,
               .a = c.input(0).as<T>() + offset(outer_a, i) * m * k,
               .a_row = k,
               .a_column = 1,
               .b = c.input(1).as<T>() + offset(outer_b, i) * k * n,
               .b_row = n,
               .b_column = 1,
               .c = out.as<T>() + i * m * n,
               .c_row = n},
              c.threads());
    return {};
  });
}

Status gemm_kernel(KernelContext& c) {
  const Dims &a = c.input(0).dims, &b = c.input(1).dims;
  if (a.rank() != 2 || b.rank() != 2)
    return fail(ErrorCode::shape_mismatch, "{} and {} are not matrices", a.to_string(),
                b.to_string());
  const bool ta = c.integer("transA") != 0, tb = c.integer("transB") != 0;
  const int64_t m = a[ta ? 1 : 0], k = a[ta ? 0 : 1], n = b[tb ? 0 : 1];
  if (b[tb ? 1 : 0] != k)
    return fail(ErrorCode::shape_mismatch, "{} and {} do not multiply", a.to_string(),
                b.to_string());
  HOLOGRAM_TRY(Tensor out, c.output(0, {m, n}));
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  return dispatch_number(out.dtype, [&]<typename T>() -> Status {
    GemmScratch scratch;
    HOLOGRAM_CHECK(gemm<T>({.m = m,
                            .n = n,
                            .k = k,
                            .a = c.input(0).as<T>(),
                            .a_row = ta ? 1 : k,
                            .a_column = ta ? m : 1,
                            .b = c.input(1).as<T>(),
                            .b_row = tb ? 1 : n,
                            .b_column = tb ? k : 1,
                            .c = out.as<T>(),
                            .c_row = n},
                           c, scratch));
    T* y = out.as<T>();
    if (alpha != 1)
      for (int64_t i = 0; i < m * n; ++i) y[i] = wrapping_multiply(y[i], truncated<T>(alpha));
    if (!c.has_input(2) || beta == 0) return {};
    const Tensor& bias = c.input(2);
    HOLOGRAM_TRY(const Dims joined, broadcast_dims(out.dims, bias.dims));
    if (!(joined == out.dims))
      return fail(ErrorCode::shape_mismatch, "C {} does not broadcast to {}", bias.dims.to_string(),
                  out.dims.to_string());
    const size_t rank = bias.dims.rank();
    const int64_t rows = rank == 2 && bias.dims[0] != 1 ? (bias.dims[1] != 1 ? n : 1) : 0;
    const int64_t columns = rank > 0 && bias.dims.back() != 1 ? 1 : 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        y[i * n + j] = wrapping_add(
            y[i * n + j],
            wrapping_multiply(truncated<T>(beta), bias.as<T>()[i * rows + j * columns]));
    return {};
  });
}

// By elimination with pivots, in f64.
Status det(KernelContext& c) {
  const Tensor& x = c.input(0);
  const size_t rank = x.dims.rank();
  if (rank < 2 || x.dims[rank - 1] != x.dims[rank - 2])
    return fail(ErrorCode::shape_mismatch, "{} is not square", x.dims.to_string());
  const int64_t n = x.dims[rank - 1];
  HOLOGRAM_TRY(Tensor y, c.output(0, leading(x.dims)));
  HOLOGRAM_TRY(auto matrix, c.scratch<double>(n * n));
  double* a = matrix.data();
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    for (int64_t i = 0; i < y.count(); ++i) {
      std::copy_n(x.as<T>() + i * n * n, n * n, a);
      double result = 1;
      for (int64_t k = 0; k < n && result != 0; ++k) {
        int64_t pivot = k;
        for (int64_t row = k + 1; row < n; ++row)
          if (std::abs(a[row * n + k]) > std::abs(a[pivot * n + k])) pivot = row;
        if (pivot != k) {
          std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
          result = -result;
        }
        result *= a[k * n + k];
        for (int64_t row = k + 1; result != 0 && row < n; ++row) {
          const double factor = a[row * n + k] / a[k * n + k];
          for (int64_t j = k + 1; j < n; ++j) a[row * n + j] -= factor * a[k * n + j];
        }
      }
      y.as<T>()[i] = static_cast<T>(result);
    }
    return {};
  });
}

constexpr Kernel kKernels[] = {
    {"Det", det, true},
    {"Einsum", einsum, true},
    {"Gemm", gemm_kernel, true},
    {"MatMul", matmul, true},
};

}  // namespace

std::span<const Kernel> linear_algebra_kernels() { return kKernels; }

}  // namespace hologram::kernels
