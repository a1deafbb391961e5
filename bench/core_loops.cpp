#include "bench/core_loops.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f"), noinline))

namespace hologram::bench {

bool has_avx512() { return __builtin_cpu_supports("avx512f"); }

// Unrolled four times, and a masked rest. Multiples of 64 elements never reach the rest.
AVX512 void hand_add(const float* a, const float* b, float* out, size_t n) {
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    _mm512_storeu_ps(out + i, _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i)));
    _mm512_storeu_ps(out + i + 16,
                     _mm512_add_ps(_mm512_loadu_ps(a + i + 16), _mm512_loadu_ps(b + i + 16)));
    _mm512_storeu_ps(out + i + 32,
                     _mm512_add_ps(_mm512_loadu_ps(a + i + 32), _mm512_loadu_ps(b + i + 32)));
    _mm512_storeu_ps(out + i + 48,
                     _mm512_add_ps(_mm512_loadu_ps(a + i + 48), _mm512_loadu_ps(b + i + 48)));
  }
  for (; i < n; ++i) out[i] = a[i] + b[i];
}

AVX512 void hand_relu(const float* a, float* out, size_t n) {
  const __m512 zero = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    _mm512_storeu_ps(out + i, _mm512_max_ps(_mm512_loadu_ps(a + i), zero));
    _mm512_storeu_ps(out + i + 16, _mm512_max_ps(_mm512_loadu_ps(a + i + 16), zero));
    _mm512_storeu_ps(out + i + 32, _mm512_max_ps(_mm512_loadu_ps(a + i + 32), zero));
    _mm512_storeu_ps(out + i + 48, _mm512_max_ps(_mm512_loadu_ps(a + i + 48), zero));
  }
  for (; i < n; ++i) out[i] = a[i] > 0 ? a[i] : 0;
}

AVX512 void hand_axpy(float s, const float* a, const float* b, float* out, size_t n) {
  const __m512 by = _mm512_set1_ps(s);
  size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (size_t k = 0; k < 64; k += 16)
      _mm512_storeu_ps(out + i + k,
                       _mm512_fmadd_ps(by, _mm512_loadu_ps(a + i + k), _mm512_loadu_ps(b + i + k)));
  }
  for (; i < n; ++i) out[i] = s * a[i] + b[i];
}

AVX512 float hand_sum(const float* a, size_t n) {
  __m512 sums[8];
#pragma GCC unroll 8
  for (size_t k = 0; k < 8; ++k) sums[k] = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 128 <= n; i += 128) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(a + i + 16 * k));
  }
#pragma GCC unroll 8
  for (size_t k = 1; k < 8; ++k) sums[0] = _mm512_add_ps(sums[0], sums[k]);
  float total = _mm512_reduce_add_ps(sums[0]);
  for (; i < n; ++i) total += a[i];
  return total;
}

AVX512 float hand_dot(const float* a, const float* b, size_t n) {
  __m512 sums[8];
#pragma GCC unroll 8
  for (size_t k = 0; k < 8; ++k) sums[k] = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 128 <= n; i += 128) {
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm512_fmadd_ps(_mm512_loadu_ps(a + i + 16 * k), _mm512_loadu_ps(b + i + 16 * k),
                                sums[k]);
  }
#pragma GCC unroll 8
  for (size_t k = 1; k < 8; ++k) sums[0] = _mm512_add_ps(sums[0], sums[k]);
  float total = _mm512_reduce_add_ps(sums[0]);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

__attribute__((noinline)) void empty_function() { asm volatile(""); }

}  // namespace hologram::bench
