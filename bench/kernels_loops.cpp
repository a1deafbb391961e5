#include "bench/kernels_loops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace hologram::bench {
namespace {

// __restrict: the arrays do not overlap, as a kernel's do not.
#define LOOP(name, expression)                                                 \
  void name(const void* x, const void* y, void* z, const float* s, size_t n) { \
    [[maybe_unused]] const float* __restrict a = static_cast<const float*>(x); \
    [[maybe_unused]] const float* __restrict b = static_cast<const float*>(y); \
    [[maybe_unused]] const float s0 = s[0], s1 = s[1];                         \
    float* __restrict c = static_cast<float*>(z);                              \
    for (size_t i = 0; i < n; ++i) c[i] = expression;                          \
  }

LOOP(add, a[i] + b[i])
LOOP(sub, a[i] - b[i])
LOOP(mul, a[i] * b[i])
LOOP(div, a[i] / b[i])
LOOP(minimum, a[i] < b[i] ? a[i] : b[i])
LOOP(maximum, a[i] > b[i] ? a[i] : b[i])
LOOP(power, std::pow(a[i], b[i]))
LOOP(absolute, std::fabs(a[i]))
LOOP(negate, -a[i])
LOOP(root, std::sqrt(a[i]))
LOOP(reciprocal_root, 1.0f / std::sqrt(a[i]))
LOOP(logistic, 1.0f / (1.0f + std::exp(-a[i])))
LOOP(hyperbolic_tangent, std::tanh(a[i]))
LOOP(exponential, std::exp(a[i]))
LOOP(logarithm, std::log(a[i]))
LOOP(sine, std::sin(a[i]))
LOOP(cosine, std::cos(a[i]))
LOOP(rectify, a[i] > 0 ? a[i] : 0.0f)
LOOP(leaky, a[i] >= 0 ? a[i] : s0 * a[i])
LOOP(gelu, a[i] * (0.5f * (1.0f + std::erf(a[i] * 0.70710678f))))
LOOP(copy, a[i])
LOOP(scalar_add, a[i] + s0)
LOOP(scalar_mul, a[i] * s0)
LOOP(clip, a[i]<s0 ? s0 : a[i]> s1 ? s1 : a[i])
LOOP(axpy, s0* a[i] + b[i])
LOOP(fill, s0)
LOOP(range, s0 + static_cast<float>(i) * s1)
LOOP(squared_difference, (a[i] - b[i]) * (a[i] - b[i]))
LOOP(cross_entropy, -(b[i] * std::max(std::log(a[i]), -100.0f) +
                      (1 - b[i]) * std::max(std::log1p(-a[i]), -100.0f)))

struct BFloat {
  uint16_t bits;
};
template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_same_v<To, BFloat>) {
    // GCC 12 has no bf16: to nearest, to even, as by hand.
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>(x != x ? (bits >> 16) | 0x40 : rounded)};
  } else if constexpr (std::is_same_v<From, BFloat>) {
    const uint32_t bits = uint32_t{x.bits} << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To> &&
                       !std::is_same_v<To, bool>) {
    // The kernels' meaning: saturating, NaN gives 0. A plain cast is undefined beyond the range.
    constexpr int kDigits = std::numeric_limits<To>::digits;
    constexpr float kAbove = static_cast<float>(uint64_t{1} << (kDigits - 1)) * 2;
    constexpr float kLowest = std::is_signed_v<To> ? -kAbove : 0;
    constexpr float kHighest = kDigits > 24 ? kAbove * 0x0.ffffffp0f : kAbove - 1;
    float inside = x > kLowest ? x : kLowest;
    inside = inside < kHighest ? inside : kHighest;
    To whole = static_cast<To>(inside);
    if constexpr (kDigits > 24) whole = x >= kAbove ? std::numeric_limits<To>::max() : whole;
    if constexpr (std::is_signed_v<To>) whole = x == x ? whole : To{0};
    return whole;
  } else {
    return static_cast<To>(x);
  }
}
template <typename From, typename To>
void cast(const void* x, const void*, void* z, const float*, size_t n) {
  const From* __restrict a = static_cast<const From*>(x);
  To* __restrict c = static_cast<To*>(z);
  for (size_t i = 0; i < n; ++i) c[i] = convert<To>(a[i]);
}

using D = DType;
// Converts f32 to a type and back.
#define CASTS(name, type, dtype)                                     \
  {"onnx_cast_f32_" name, 1, 0, cast<float, type>, D::f32, dtype}, { \
    "onnx_cast_" name "_f32", 1, 0, cast<type, float>, dtype, D::f32 \
  }

const ElementLoop kLoops[] = {
    {"vector_add", 2, 0, add},
    {"vector_sub", 2, 0, sub},
    {"vector_mul", 2, 0, mul},
    {"vector_div", 2, 0, div},
    {"vector_min", 2, 0, minimum},
    {"vector_max", 2, 0, maximum},
    {"vector_pow", 2, 0, power},
    {"vector_axpy", 2, 1, axpy},
    {"onnx_add", 2, 0, add},
    {"onnx_sub", 2, 0, sub},
    {"onnx_mul", 2, 0, mul},
    {"onnx_div", 2, 0, div},
    {"loss_squared_difference", 2, 0, squared_difference},
    {"loss_binary_cross_entropy", 2, 0, cross_entropy},
    {"vector_abs", 1, 0, absolute},
    {"vector_neg", 1, 0, negate},
    {"vector_sqrt", 1, 0, root},
    {"vector_rsqrt", 1, 0, reciprocal_root},
    {"vector_scalar_add", 1, 1, scalar_add},
    {"vector_clip", 1, 2, clip},
    {"onnx_scalar_mul", 1, 1, scalar_mul},
    {"onnx_leakyrelu", 1, 1, leaky},
    {"sigmoid", 1, 0, logistic},
    {"tanh_activation", 1, 0, hyperbolic_tangent},
    {"exp", 1, 0, exponential},
    {"log", 1, 0, logarithm},
    {"sin", 1, 0, sine},
    {"cos", 1, 0, cosine},
    {"relu", 1, 0, rectify},
    {"onnx_relu", 1, 0, rectify},
    {"onnx_sigmoid", 1, 0, logistic},
    {"onnx_tanh", 1, 0, hyperbolic_tangent},
    {"onnx_gelu", 1, 0, gelu},
    {"onnx_reshape", 1, 0, copy},
    {"onnx_flatten", 1, 0, copy},
    {"onnx_squeeze", 1, 0, copy},
    {"onnx_unsqueeze", 1, 0, copy},
    {"onnx_constant_fill", 0, 1, fill},
    {"onnx_range", 0, 2, range},
    CASTS("f64", double, D::f64),
    CASTS("f16", _Float16, D::f16),
    CASTS("bf16", BFloat, D::bf16),
    CASTS("i8", int8_t, D::i8),
    CASTS("i16", int16_t, D::i16),
    CASTS("i32", int32_t, D::i32),
    CASTS("i64", int64_t, D::i64),
    CASTS("u8", uint8_t, D::u8),
    CASTS("u16", uint16_t, D::u16),
    CASTS("u32", uint32_t, D::u32),
    CASTS("u64", uint64_t, D::u64),
    CASTS("bool", bool, D::boolean),
    {"onnx_cast_i32_i64", 1, 0, cast<int32_t, int64_t>, D::i32, D::i64},
    {"onnx_cast_i64_i32", 1, 0, cast<int64_t, int32_t>, D::i64, D::i32},
};

}  // namespace

std::span<const ElementLoop> element_loops() { return kLoops; }

void bias_gelu_loop(const float* __restrict a, const float* __restrict bias, float* __restrict c,
                    size_t rows, size_t hidden) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < hidden; ++i) {
      const float x = a[row * hidden + i] + bias[i];
      c[row * hidden + i] = x * (0.5f * (1.0f + std::erf(x * 0.70710678f)));
    }
}

void batch_normalization_loop(const float* __restrict x, const float* __restrict scale,
                              const float* __restrict bias, const float* __restrict mean,
                              const float* __restrict variance, float* __restrict y, size_t batch,
                              size_t channels, size_t spatial, float eps) {
  for (size_t plane = 0; plane < batch * channels; ++plane)
    for (size_t i = 0; i < spatial; ++i) {
      const size_t c = plane % channels, at = plane * spatial + i;
      y[at] = (x[at] - mean[c]) / std::sqrt(variance[c] + eps) * scale[c] + bias[c];
    }
}

void matmul_loop(const float* __restrict a, const float* __restrict b, float* __restrict c,
                 size_t m, size_t n, size_t k) {
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      float total = 0;
      for (size_t p = 0; p < k; ++p) total += a[i * k + p] * b[p * n + j];
      c[i * n + j] = total;
    }
}

void convolution_loop(const float* __restrict x, const float* __restrict w,
                      const float* __restrict bias, float* __restrict y, size_t channels,
                      size_t height, size_t width, size_t out_channels) {
  for (size_t o = 0; o < out_channels; ++o)
    for (size_t row = 0; row < height; ++row)
      for (size_t column = 0; column < width; ++column) {
        float total = bias[o];
        for (size_t c = 0; c < channels; ++c)
          for (size_t ky = 0; ky < 3; ++ky)
            for (size_t kx = 0; kx < 3; ++kx) {
              const long v = static_cast<long>(row + ky) - 1,
                         u = static_cast<long>(column + kx) - 1;
              if (v >= 0 && v < static_cast<long>(height) && u >= 0 && u < static_cast<long>(width))
                total += x[(c * height + static_cast<size_t>(v)) * width + static_cast<size_t>(u)] *
                         w[((o * channels + c) * 3 + ky) * 3 + kx];
            }
        y[(o * height + row) * width + column] = total;
      }
}

}  // namespace hologram::bench
