// What the core benchmark compares with: loops written by hand with AVX-512 intrinsics.
#pragma once

#include <cstddef>

namespace hologram::bench {

bool has_avx512();

// out[i] = a[i] + b[i]
void hand_add(const float* a, const float* b, float* out, size_t n);
// out[i] = max(a[i], 0)
void hand_relu(const float* a, float* out, size_t n);
// out[i] = s * a[i] + b[i]
void hand_axpy(float s, const float* a, const float* b, float* out, size_t n);
float hand_sum(const float* a, size_t n);
float hand_dot(const float* a, const float* b, size_t n);

// Takes nothing and does nothing; never inlined.
void empty_function();

}  // namespace hologram::bench
