// Activations and elementary functions over whole arrays; see math-inl.h for their errors.
#pragma once

#include <cstddef>

#include "backends/cpu/dense/epilogue.h"
#include "support/thread_pool.h"

namespace hologram::backends::dense {

// y = activation(x); y may be x.
void activate(Activation activation, float first, float second, const float* x, float* y,
              size_t count, ThreadPool& pool);

// One function each, for code that needs it alone and for the tests of errors.
enum class Function : unsigned char { exp, log, tanh, erf, sigmoid, sin, cos };
void apply(Function function, const float* x, float* y, size_t count);

}  // namespace hologram::backends::dense
