// Matrix: a tensor of any rank seen as rows x columns, scaled into a safe range, for a transform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "holotensor/tensor.h"
#include "holotensor/values.h"
#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::holotensor {

struct MatrixShape {
  size_t rows = 1, columns = 1;
  size_t size() const { return rows * columns; }
  bool operator==(const MatrixShape&) const = default;
};

// Cuts the axes in two groups so that the matrix is as near square as it can be; a convolution's
// [512, 256, 3, 3] becomes 512 x 2304. Rank 0 is 1 x 1, rank 1 is 1 x n.
MatrixShape flatten(std::span<const int64_t> shape);

struct Matrix {
  MatrixShape shape;
  std::vector<float> source;  // the values as they are
  std::vector<float> scaled;  // times 2^-exponent, at most 1 in magnitude; 0 where not finite
  int exponent = 0;
  bool finite = true;
  double mean_square = 0;  // of `scaled`
};
Result<Matrix> to_matrix(const TensorView& tensor, ThreadPool& pool);

// The sum of part(begin, end) over fixed chunks of [0, count): the same bits for every pool.
double sum_in_chunks(size_t count, ThreadPool& pool, FunctionRef<double(size_t, size_t)> part);
// ErrorSum over fixed chunks.
ErrorSum measure(std::span<const float> source, std::span<const float> reconstruction,
                 ThreadPool& pool);

}  // namespace hologram::holotensor
