#include "backends/cpu/kernels/gemm.h"

#include <algorithm>

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
          for (int64_t j = 0; j < g.n; ++j) row[j] = static_cast<T>(row[j] + x * b[j]);
        }
      } else {
        for (int64_t j = 0; j < g.n; ++j) {
          T sum = row[j];
          for (int64_t p = 0; p < g.k; ++p)
            sum = static_cast<T>(sum + g.a[i * g.a_row + p * g.a_column] *
                                           g.b[p * g.b_row + j * g.b_column]);
          row[j] = sum;
        }
      }
    }
  });
}

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
