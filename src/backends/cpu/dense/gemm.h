// Matrix products in f32: C = epilogue(A * B).
//
// B is used in panels of 32 columns (the last one 16 where that is enough), each k-major:
//     packed[panel][k][width]          columns beyond n are zero
// The format is the same for every CPU level, so weights are packed once, when compiling.
//
// Every element is one chain of fused multiply-adds over k = 0, 1, 2, ...: its bits depend neither
// on m, n, the number of threads nor on whether B came packed (unless the product is `ordered`).
// (SSE4 has no fused operation; a level agrees with itself.)
//
// All pointers are borrowed. Nothing allocates: scratch comes from the caller, 64-byte aligned, as
// large as ..._scratch_bytes() says, and its contents mean nothing before and after. C overlaps
// neither A nor B.
#pragma once

#include <cstddef>
#include <span>

#include "backends/cpu/dense/epilogue.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

// One product. Exactly one of `b` and `packed_b` is set.
struct Gemm {
  size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  // m x k, or k x m when a_transposed; rows `lda` floats apart
  size_t lda = 0;
  bool a_transposed = false;
  const float* packed_b = nullptr;  // from pack_b
  const float* b = nullptr;         // k x n, or n x k when b_transposed; rows `ldb` floats apart
  size_t ldb = 0;
  bool b_transposed = false;
  float* c = nullptr;  // m x n, rows `ldc` floats apart
  size_t ldc = 0;
  Epilogue epilogue;
  // Sums in the order of ONNX Runtime (ordered.h): for a plain B that is not transposed, without an
  // epilogue.
  bool ordered = false;
};

size_t packed_b_bytes(size_t k, size_t n);
void pack_b(size_t k, size_t n, const float* b, size_t ldb, bool transposed, float* packed,
            ThreadPool& pool);

size_t gemm_scratch_bytes(const Gemm& gemm);
void gemm(const Gemm& gemm, std::byte* scratch, ThreadPool& pool);

// The same product for every index of a box: item (i0, i1, ...) uses a + sum(i * a_stride), ...
// A stride of 0 broadcasts. Strides are in floats. `item.packed_b` is not strided (give 0); the
// residual moves with C.
struct GemmBatch {
  Gemm item;
  std::span<const size_t> dims;
  std::span<const size_t> a_strides, b_strides, c_strides;
};

size_t gemm_batch_scratch_bytes(const GemmBatch& batch);
void gemm_batch(const GemmBatch& batch, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
