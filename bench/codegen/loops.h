// What generated code is compared with: loops as written by hand with AVX-512 intrinsics, and plain
// loops as g++ -O3 for this level makes them.
#pragma once

#include <cstddef>

namespace hologram::bench {

void hand_vector_add(const float* a, const float* b, float* c, size_t n);
void hand_relu(const float* a, float* c, size_t n);
float hand_sum(const float* a, size_t n);
void hand_axpy(const float* x, const float* y, float* c, size_t n);

void plain_matmul(const float* a, const float* b, float* c, size_t m, size_t n, size_t k);
void plain_convolution3x3(const float* in, const float* weight, float* out, int width, int height);

}  // namespace hologram::bench
