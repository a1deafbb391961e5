#include "bench/kernels_loops.h"

#include <cmath>

namespace hologram::bench {
namespace {

#define BINARY(name, expression)                                                                   \
  void name(const float* __restrict a, const float* __restrict b, float* __restrict c, size_t n) { \
    for (size_t i = 0; i < n; ++i) c[i] = expression;                                              \
  }
#define UNARY(name, expression)                                         \
  void name(const float* __restrict a, float* __restrict c, size_t n) { \
    for (size_t i = 0; i < n; ++i) c[i] = expression;                   \
  }

BINARY(add, a[i] + b[i])
BINARY(sub, a[i] - b[i])
BINARY(mul, a[i] * b[i])
BINARY(div, a[i] / b[i])
BINARY(minimum, a[i] < b[i] ? a[i] : b[i])
BINARY(maximum, a[i] > b[i] ? a[i] : b[i])
BINARY(power, std::pow(a[i], b[i]))
UNARY(absolute, std::fabs(a[i]))
UNARY(negate, -a[i])
UNARY(root, std::sqrt(a[i]))
UNARY(reciprocal_root, 1.0f / std::sqrt(a[i]))
UNARY(logistic, 1.0f / (1.0f + std::exp(-a[i])))
UNARY(hyperbolic_tangent, std::tanh(a[i]))
UNARY(exponential, std::exp(a[i]))
UNARY(logarithm, std::log(a[i]))
UNARY(sine, std::sin(a[i]))
UNARY(cosine, std::cos(a[i]))
UNARY(rectify, a[i] > 0 ? a[i] : 0.0f)
UNARY(gelu, a[i] * (0.5f * (1.0f + std::erf(a[i] * 0.70710678f))))
UNARY(copy, a[i])

}  // namespace

const NamedBinaryLoop kBinaryLoops[] = {
    {"vector_add", add},     {"vector_sub", sub},     {"vector_mul", mul},   {"vector_div", div},
    {"vector_min", minimum}, {"vector_max", maximum}, {"vector_pow", power}, {"onnx_add", add},
    {"onnx_sub", sub},       {"onnx_mul", mul},       {"onnx_div", div}};
const size_t kBinaryLoopCount = sizeof(kBinaryLoops) / sizeof(kBinaryLoops[0]);
const NamedUnaryLoop kUnaryLoops[] = {{"vector_abs", absolute},
                                      {"vector_neg", negate},
                                      {"vector_sqrt", root},
                                      {"vector_rsqrt", reciprocal_root},
                                      {"sigmoid", logistic},
                                      {"tanh_activation", hyperbolic_tangent},
                                      {"exp", exponential},
                                      {"log", logarithm},
                                      {"sin", sine},
                                      {"cos", cosine},
                                      {"relu", rectify},
                                      {"onnx_relu", rectify},
                                      {"onnx_sigmoid", logistic},
                                      {"onnx_tanh", hyperbolic_tangent},
                                      {"onnx_gelu", gelu},
                                      {"onnx_reshape", copy}};
const size_t kUnaryLoopCount = sizeof(kUnaryLoops) / sizeof(kUnaryLoops[0]);

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
