// gemm: C = A * B for any strides of A and B. The one that every kernel may call.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernel.h"
#include "support/thread_pool.h"

namespace hologram::kernels {

template <typename T>
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_row = 0, a_column = 1;  // strides in elements
  const T* b = nullptr;
  int64_t b_row = 0, b_column = 1;
  T* c = nullptr;
  int64_t c_row = 0;
  bool accumulate = false;  // C += A * B
};

// Memory that products of one kernel run share; grown from the context when it is too small.
struct GemmScratch {
  std::span<std::byte> bytes;
};

// For float, double and the eight integer types (which wrap). f32 matrices whose rows or columns
// are contiguous go to the dense kernels. The sum over k is in order, so the result does not depend
// on the number of threads.
template <typename T>
Status gemm(const Gemm<T>& g, KernelContext& context, GemmScratch& scratch);

// The same by plain loops, without scratch.
template <typename T>
void gemm(const Gemm<T>& g, ThreadPool& threads);

}  // namespace hologram::kernels
