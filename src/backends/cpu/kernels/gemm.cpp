#include "backends/cpu/kernels/gemm.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/kernels/wrapping.h"

namespace hologram::kernels {

template <typename T>
void gemm(const Gemm<T>& g, ThreadPool& threads) {
  const size_t work = static_cast<size_t>(std::max<int64_t>(1, g.n * g.k));
  const size_t grain = std::max<size_t>(1, 65536 / work);
  threads.parallel_for(g.m, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      T* row = g.c + i * g.c_row;
      if (!g.accumulate) std::fill_n(row, g.n, T(0));
      if (g.b_column == 1) {
        for (int64_t p = 0; p < g.k; ++p) {
          const T x = g.a[i * g.a_row + p * g.a_column];
          const T* b = g.b + p * g.b_row;
          for (int64_t j = 0; j < g.n; ++j)
            row[j] = wrapping_add(row[j], wrapping_multiply(x, b[j]));
        }
      } else {
        for (int64_t j = 0; j < g.n; ++j) {
          T sum = row[j];
          for (int64_t p = 0; p < g.k; ++p)
            sum = wrapping_add(sum, wrapping_multiply(g.a[i * g.a_row + p * g.a_column],
                                                      g.b[p * g.b_row + j * g.b_column]));
          row[j] = sum;
        }
      }
    }
  });
}

namespace {

// Rows or columns that are contiguous; nothing where neither is.
bool is_dense(int64_t row, int64_t column) { return row == 1 || column == 1; }

}  // namespace

template <typename T>
Status gemm(const Gemm<T>& g, KernelContext& context, [[maybe_unused]] GemmScratch& scratch) {
  if constexpr (std::is_same_v<T, float>) {
    if (g.m > 0 && g.n > 0 && g.k > 0 && is_dense(g.a_row, g.a_column) &&
        is_dense(g.b_row, g.b_column)) {
      const bool a_transposed = g.a_column != 1, b_transposed = g.b_column != 1;
      backends::dense::Gemm product{.m = static_cast<size_t>(g.m),
                                    .n = static_cast<size_t>(g.n),
                                    .k = static_cast<size_t>(g.k),
                                    .a = g.a,
                                    .lda = static_cast<size_t>(a_transposed ? g.a_column : g.a_row),
                                    .a_transposed = a_transposed,
                                    .b = g.b,
                                    .ldb = static_cast<size_t>(b_transposed ? g.b_column : g.b_row),
                                    .b_transposed = b_transposed,
                                    .c = g.c,
                                    .ldc = static_cast<size_t>(g.c_row)};
      if (g.accumulate) product.epilogue.residual = g.c;
      if (const size_t need = backends::dense::gemm_scratch_bytes(product);
          need > scratch.bytes.size()) {
        HOLOGRAM_TRY(scratch.bytes, context.scratch<std::byte>(need));
      }
      backends::dense::gemm(product, scratch.bytes.data(), context.threads());
      return {};
    }
  }
  gemm<T>(g, context.threads());
  return {};
}

template Status gemm(const Gemm<float>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<double>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<int8_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<int16_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<int32_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<int64_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<uint8_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<uint16_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<uint32_t>&, KernelContext&, GemmScratch&);
template Status gemm(const Gemm<uint64_t>&, KernelContext&, GemmScratch&);

template void gemm(const Gemm<float>&, ThreadPool&);
template void gemm(const Gemm<double>&, ThreadPool&);
template void gemm(const Gemm<int8_t>&, ThreadPool&);
template void gemm(const Gemm<int16_t>&, ThreadPool&);
template void gemm(const Gemm<int32_t>&, ThreadPool&);
template void gemm(const Gemm<int64_t>&, ThreadPool&);
template void gemm(const Gemm<uint8_t>&, ThreadPool&);
template void gemm(const Gemm<uint16_t>&, ThreadPool&);
template void gemm(const Gemm<uint32_t>&, ThreadPool&);
template void gemm(const Gemm<uint64_t>&, ThreadPool&);

}  // namespace hologram::kernels
