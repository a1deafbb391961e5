// rank_one_sum: the sum of rank-one matrices, to the same bits on every machine.
#pragma once

#include <span>

#include "support/thread_pool.h"

namespace hologram::holotensor {

// out = sum_k left_k right_k^T in the order of k, with one multiplication and one addition a term
// (never fused): an exact residual is taken against this, so a BLAS, whose order and rounding
// depend on the CPU, will not do. `left` is rows x rank, `right` rank x columns, `out` rows x
// columns, all row-major.
void rank_one_sum(std::span<const float> left, std::span<const float> right, size_t rows,
                  size_t columns, std::span<float> out, ThreadPool& pool);

}  // namespace hologram::holotensor
