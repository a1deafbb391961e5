// Transposition of matrices of 4-byte elements.
#pragma once

#include <cstddef>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns; on the calling
// thread. Strides in elements. Ranges do not overlap.
void transpose_block(size_t rows, size_t columns, const float* from, size_t from_stride, float* to,
                     size_t to_stride);

// `count` matrices, one after the other, each rows x columns, dense: the transposition of the last
// two of three dimensions, in cache-sized blocks over the pool.
void transpose(size_t count, size_t rows, size_t columns, const float* from, float* to,
               ThreadPool& pool);

}  // namespace hologram::backends::dense
