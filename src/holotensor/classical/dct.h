// dct: the orthonormal two-dimensional DCT-II and its inverse, on KissFFT.
//
// An axis is cut into segments of at most kMaxDctSegment points whose only prime factors are 2, 3
// and 5 (a vocabulary of 50257 words is 12 segments of 4096 and a few small ones), and each segment
// is transformed by itself: the whole stays orthonormal, takes n log n for every length, and needs
// no padding.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::holotensor {

inline constexpr size_t kMaxDctSegment = 4096;

// The lengths an axis of `length` points is cut into; their sum is `length`.
std::vector<size_t> dct_segments(size_t length);

enum class DctDirection { forward, inverse };

// Transforms `values`, rows x columns in row-major order, in place. The same bits for every number
// of threads. Fails when the size of `values` is not rows * columns, or without memory.
Status dct_2d(std::span<float> values, size_t rows, size_t columns, DctDirection direction,
              ThreadPool& pool = ThreadPool::shared());

}  // namespace hologram::holotensor
