// The library's element-wise kernels as plain C++ loops, compiled by g++ -O3 -march=native: what a
// user would write instead.
#pragma once

#include <cstddef>
#include <span>

#include "support/dtype.h"

namespace hologram::bench {

// c[i] = f(a[i], b[i], s[0], s[1]); what the kernel does not take is null.
using Loop = void (*)(const void* a, const void* b, void* c, const float* s, size_t n);

// A kernel whose parameters are `inputs` arrays of type `from`, one of type `to`, `scalars` f32 and
// the count.
struct ElementLoop {
  const char* kernel;
  int inputs, scalars;
  Loop loop;
  DType from = DType::f32, to = DType::f32;
};
std::span<const ElementLoop> element_loops();

// c = gelu(a + bias), a row at a time.
void bias_gelu_loop(const float* a, const float* bias, float* c, size_t rows, size_t hidden);
// batch x channels x spatial.
void batch_normalization_loop(const float* x, const float* scale, const float* bias,
                              const float* mean, const float* variance, float* y, size_t batch,
                              size_t channels, size_t spatial, float eps);
// Row-major, three nested loops.
void matmul_loop(const float* a, const float* b, float* c, size_t m, size_t n, size_t k);
// One image, 3 x 3, stride 1, padding 1.
void convolution_loop(const float* x, const float* w, const float* bias, float* y, size_t channels,
                      size_t height, size_t width, size_t out_channels);

}  // namespace hologram::bench
