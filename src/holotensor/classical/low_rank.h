// low_rank: the leading singular values and vectors of a matrix, on LAPACK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/result.h"
#include "support/thread_pool.h"

namespace hologram::holotensor {

struct LowRankOptions {
  size_t rank = 256;              // how many components; at most the smaller side is given
  size_t oversampling = 16;       // extra random directions, for accuracy
  unsigned power_iterations = 4;  // each sharpens the directions when the values fall off slowly
  uint64_t seed = 1;
};

// The matrix is nearly sum_k values[k] * left_k * right_k^T, values falling.
struct LowRankFactors {
  size_t rows = 0, columns = 0, rank = 0;
  std::vector<float> values;
  std::vector<float> left;   // rank x rows: each component's left vector in a row, unit length
  std::vector<float> right;  // rank x columns
};

// `matrix` is rows x columns, row-major and finite. Matrices whose smaller side is at most
// kExactSvdSide get the full decomposition; larger ones the randomised one (Halko, Martinsson,
// Tropp 2011), whose cost is a few products with rank + oversampling vectors. The same bits for
// every number of threads.
inline constexpr size_t kExactSvdSide = 256;
Result<LowRankFactors> low_rank_factors(std::span<const float> matrix, size_t rows, size_t columns,
                                        const LowRankOptions& options,
                                        ThreadPool& pool = ThreadPool::shared());

}  // namespace hologram::holotensor
