// The activation functions a recurrent layer can name.
#pragma once

#include <cmath>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

struct RecurrentActivation {
  enum class Kind : uint8_t {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus
  };
  Kind kind = Kind::tanh;
  float alpha = 0, beta = 0;

  template <typename T>
  T operator()(T x) const {
    const T a = alpha, b = beta;
    switch (kind) {
      case Kind::relu:
        return std::max(T(0), x);
      case Kind::tanh:
        return std::tanh(x);
      case Kind::sigmoid:
        return 1 / (1 + std::exp(-x));
      case Kind::affine:
        return a * x + b;
      case Kind::leaky_relu:
        return x >= 0 ? x : a * x;
      case Kind::thresholded_relu:
        return x >= a ? x : T(0);
      case Kind::scaled_tanh:
        return a * std::tanh(b * x);
      case Kind::hard_sigmoid:
        return std::min(std::max(a * x + b, T(0)), T(1));
      case Kind::elu:
        return x >= 0 ? x : a * std::expm1(x);
      case Kind::softsign:
        return x / (1 + std::abs(x));
      case Kind::softplus:
        return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
    }
    return x;
  }
};

// The `per_direction * directions` functions of a node; `defaults` where it names none. Alphas and
// betas are consumed in order by the functions that have one.
Status read_activations(const KernelContext& c, size_t per_direction, size_t directions,
                        const RecurrentActivation::Kind* defaults, RecurrentActivation* result);

}  // namespace hologram::kernels
