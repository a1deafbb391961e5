#include "holotensor/classical/matrix.h"

#include <algorithm>
#include <cmath>

namespace hologram::holotensor {
namespace {

constexpr size_t kChunk = 1 << 16;

size_t chunk_count(size_t count) { return (count + kChunk - 1) / kChunk; }

}  // namespace

MatrixShape flatten(std::span<const int64_t> shape) {
  size_t count = 1;
  for (const int64_t dimension : shape) count *= static_cast<size_t>(dimension);
  if (count == 0) return {0, 0};
  MatrixShape best{1, count};
  size_t rows = 1;
  for (const int64_t dimension : shape) {
    rows *= static_cast<size_t>(dimension);
    const MatrixShape candidate{rows, count / rows};
    if (std::max(candidate.rows, candidate.columns) < std::max(best.rows, best.columns)) {
      best = candidate;
    }
  }
  return best;
}

Result<Matrix> to_matrix(const TensorView& tensor, ThreadPool& pool) {
  HOLOGRAM_CHECK(validate(tensor));
  HOLOGRAM_TRY(const uint64_t count, element_count(tensor.shape, tensor.dtype));
  Matrix matrix;
  matrix.shape = flatten(tensor.shape);
  matrix.source.resize(count);
  HOLOGRAM_CHECK(to_f32(tensor.dtype, tensor.bytes, matrix.source));
  float largest = 0;
  for (const float value : matrix.source) {
    if (std::isfinite(value)) {
      largest = std::max(largest, std::abs(value));
    } else {
      matrix.finite = false;
    }
  }
  if (largest > 0) std::frexp(largest, &matrix.exponent);
  matrix.scaled.resize(count);
  pool.parallel_for(count, kChunk, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float value = matrix.source[i];
      matrix.scaled[i] = std::isfinite(value) ? std::ldexp(value, -matrix.exponent) : 0.0f;
    }
  });
  const double energy = sum_in_chunks(count, pool, [&](size_t begin, size_t end) {
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += double{matrix.scaled[i]} * matrix.scaled[i];
    return sum;
  });
  matrix.mean_square = count > 0 ? energy / static_cast<double>(count) : 0;
  return matrix;
}

double sum_in_chunks(size_t count, ThreadPool& pool, FunctionRef<double(size_t, size_t)> part) {
  std::vector<double> sums(chunk_count(count));
  pool.parallel_for(sums.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      sums[i] = part(i * kChunk, std::min(count, (i + 1) * kChunk));
    }
  });
  double sum = 0;
  for (const double value : sums) sum += value;
  return sum;
}

ErrorSum measure(std::span<const float> source, std::span<const float> reconstruction,
                 ThreadPool& pool) {
  std::vector<ErrorSum> sums(chunk_count(source.size()));
  pool.parallel_for(sums.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t first = i * kChunk, length = std::min(kChunk, source.size() - first);
      sums[i].add(source.subspan(first, length), reconstruction.subspan(first, length));
    }
  });
  ErrorSum sum;
  for (const ErrorSum& other : sums) sum.add(other);
  return sum;
}

}  // namespace hologram::holotensor
