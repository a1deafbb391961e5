// Compiled with -O3 -march=x86-64-v4 -mprefer-vector-width=512 -ffp-contract=fast.
#include "bench/codegen/loops.h"

#include <immintrin.h>

namespace hologram::bench {

void hand_vector_add(const float* a, const float* b, float* c, size_t n) {
  size_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (size_t k = 0; k < 64; k += 16)
      _mm512_storeu_ps(c + i + k,
                       _mm512_add_ps(_mm512_loadu_ps(a + i + k), _mm512_loadu_ps(b + i + k)));
  for (; i < n; ++i) c[i] = a[i] + b[i];
}

void hand_relu(const float* a, float* c, size_t n) {
  size_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (size_t k = 0; k < 64; k += 16)
      _mm512_storeu_ps(c + i + k, _mm512_max_ps(_mm512_setzero_ps(), _mm512_loadu_ps(a + i + k)));
  for (; i < n; ++i) c[i] = a[i] < 0 ? 0 : a[i];
}

float hand_sum(const float* a, size_t n) {
  __m512 sums[8];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 128 <= n; i += 128)
    for (size_t k = 0; k < 8; ++k)
      sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(a + i + 16 * k));
  float total = 0;
  for (__m512 sum : sums) total += _mm512_reduce_add_ps(sum);
  for (; i < n; ++i) total += a[i];
  return total;
}

void hand_axpy(const float* x, const float* y, float* c, size_t n) {
  const __m512 factor = _mm512_set1_ps(1.5f);
  size_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (size_t k = 0; k < 64; k += 16)
      _mm512_storeu_ps(c + i + k, _mm512_fmadd_ps(factor, _mm512_loadu_ps(x + i + k),
                                                  _mm512_loadu_ps(y + i + k)));
  for (; i < n; ++i) c[i] = __builtin_fmaf(1.5f, x[i], y[i]);
}

void plain_matmul(const float* a, const float* b, float* __restrict c, size_t m, size_t n,
                  size_t k) {
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (size_t p = 0; p < k; ++p)
      for (size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
  }
}

void plain_convolution3x3(const float* in, const float* weight, float* __restrict out, int width,
                          int height) {
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      float sum = 0;
      for (int ky = 0; ky < 3; ++ky)
        for (int kx = 0; kx < 3; ++kx) {
          const int sy = y + ky - 1, sx = x + kx - 1;
          if (sy >= 0 && sy < height && sx >= 0 && sx < width)
            sum += in[sy * width + sx] * weight[ky * 3 + kx];
        }
      out[y * width + x] = sum;
    }
}

}  // namespace hologram::bench
