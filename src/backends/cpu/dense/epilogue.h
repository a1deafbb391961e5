// Epilogue: what happens to a matrix product or a convolution while its tile is in cache.
//
//   v = alpha * product
//   v = v + bias + residual_scale * residual      (residual_last: added after the activation)
//   v = activation(v)
//   v = max(post_scale * v + post_shift, post_low)  (where `post`)
//   program(v)                                    (any pointwise program, a run of values a call)
//
// Plain data, borrowed for the time of the call.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hologram::backends::dense {

enum class Activation : uint8_t {
  none,
  relu,
  clip,        // first..second
  leaky_relu,  // slope: first
  elu,         // scale of the negative part: first
  sigmoid,
  tanh,
  silu,  // x * sigmoid(first * x), first is 1 for SiLU
  gelu_erf,
  gelu_tanh,
  // Both within 5e-4, by a quarter of the operations: what products of 8 bits are finished with.
  gelu_near,
  // gelu_erf within 1.2e-6, by half of them: behind products of 16 bits.
  gelu_close,
  hard_sigmoid,  // clip(first * x + second, 0, 1)
  // x * clip(first * x + 0.5, 0, 1), first 0 being the f32 nearest to a sixth; where second is not
  // 0, x * clip(x + 3, 0, 6) / 6 with a sixth in two parts, kSixth and kSixthRest.
  hard_swish,
  softplus,
  exp,
  // By the formulas of ONNX Runtime, where values are rounded to 8 bits behind them.
  tanh_ratio,
  silu_ratio,
};

inline constexpr float kSixth = 0x1.555554p-3f;
inline constexpr float kSixthRest = static_cast<float>(1.0 / 6.0 - double{kSixth});

enum class BiasAxis : uint8_t {
  column,  // one value a column of a product; one value a channel of a convolution
  row,     // one value a row of a product; not for convolutions
};

// Rewrites `count` consecutive values of the output, the first of which is `offset` elements after
// the output's start, in place. Called from any thread of the pool, for each value once.
using PointwiseProgram = void (*)(void* context, float* values, size_t count, size_t offset);

struct Epilogue {
  float alpha = 1.0f;
  const float* bias = nullptr;
  BiasAxis bias_axis = BiasAxis::column;
  // As large as the output and in its layout; may be the output itself.
  const float* residual = nullptr;
  size_t residual_stride = 0;  // of a product's residual: floats from row to row; 0: as the output
  float residual_scale = 1.0f;
  bool residual_last = false;
  Activation activation = Activation::none;
  float first = 0.0f, second = 0.0f;  // the activation's parameters
  bool post = false;
  float post_scale = 1.0f, post_shift = 0.0f, post_low = -HUGE_VALF;
  PointwiseProgram program = nullptr;
  void* program_context = nullptr;
};

// The same for sums of products that keep 8 bits of their operands.
inline Epilogue nearly(Epilogue e) {
  if (e.activation == Activation::gelu_erf || e.activation == Activation::gelu_tanh)
    e.activation = Activation::gelu_near;
  return e;
}

// And for those that keep 16.
inline Epilogue closely(Epilogue e) {
  if (e.activation == Activation::gelu_erf) e.activation = Activation::gelu_close;
  return e;
}

}  // namespace hologram::backends::dense
