// The library's kernels as plain C++ loops, compiled by g++ -O3 -march=native: what a user would
// write instead.
#pragma once

#include <cstddef>

namespace hologram::bench {

using BinaryLoop = void (*)(const float*, const float*, float*, size_t);
using UnaryLoop = void (*)(const float*, float*, size_t);

struct NamedBinaryLoop {
  const char* kernel;
  BinaryLoop loop;
};
struct NamedUnaryLoop {
  const char* kernel;
  UnaryLoop loop;
};
extern const NamedBinaryLoop kBinaryLoops[];
extern const size_t kBinaryLoopCount;
extern const NamedUnaryLoop kUnaryLoops[];
extern const size_t kUnaryLoopCount;

// Row-major, three nested loops.
void matmul_loop(const float* a, const float* b, float* c, size_t m, size_t n, size_t k);
// One image, 3 x 3, stride 1, padding 1.
void convolution_loop(const float* x, const float* w, const float* bias, float* y, size_t channels,
                      size_t height, size_t width, size_t out_channels);

}  // namespace hologram::bench
