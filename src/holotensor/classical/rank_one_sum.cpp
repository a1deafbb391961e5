#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "holotensor/classical/rank_one_sum.cpp"
#include "holotensor/classical/rank_one_sum.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace hologram::holotensor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows [begin, end) of the sum. A strip of two vectors of columns is copied together first, so that
// all components of it lie in the cache, and then meets four rows at a time.
void SumRows(const float* left, const float* right, size_t rank, size_t columns, float* out,
             size_t begin, size_t end) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t width = 2 * lanes;
  std::vector<float> strip(rank * width);
  size_t column = 0;
  for (; column + width <= columns; column += width) {
    for (size_t k = 0; k < rank; ++k) {
      std::copy_n(right + k * columns + column, width, &strip[k * width]);
    }
    size_t row = begin;
    for (; row + 4 <= end; row += 4) {
      const float* weights = left + row * rank;
      auto a0 = hn::Zero(d), b0 = hn::Zero(d), c0 = hn::Zero(d), d0 = hn::Zero(d);
      auto a1 = hn::Zero(d), b1 = hn::Zero(d), c1 = hn::Zero(d), d1 = hn::Zero(d);
      for (size_t k = 0; k < rank; ++k) {
        const auto x0 = hn::LoadU(d, strip.data() + k * width);
        const auto x1 = hn::LoadU(d, strip.data() + k * width + lanes);
        const auto wa = hn::Set(d, weights[k]), wb = hn::Set(d, weights[k + rank]);
        const auto wc = hn::Set(d, weights[k + 2 * rank]), wd = hn::Set(d, weights[k + 3 * rank]);
        a0 = hn::Add(a0, hn::Mul(wa, x0)), a1 = hn::Add(a1, hn::Mul(wa, x1));
        b0 = hn::Add(b0, hn::Mul(wb, x0)), b1 = hn::Add(b1, hn::Mul(wb, x1));
        c0 = hn::Add(c0, hn::Mul(wc, x0)), c1 = hn::Add(c1, hn::Mul(wc, x1));
        d0 = hn::Add(d0, hn::Mul(wd, x0)), d1 = hn::Add(d1, hn::Mul(wd, x1));
      }
      float* to = out + row * columns + column;
      hn::StoreU(a0, d, to), hn::StoreU(a1, d, to + lanes);
      hn::StoreU(b0, d, to + columns), hn::StoreU(b1, d, to + columns + lanes);
      hn::StoreU(c0, d, to + 2 * columns), hn::StoreU(c1, d, to + 2 * columns + lanes);
      hn::StoreU(d0, d, to + 3 * columns), hn::StoreU(d1, d, to + 3 * columns + lanes);
    }
    for (; row < end; ++row) {
      auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
      for (size_t k = 0; k < rank; ++k) {
        const auto w = hn::Set(d, left[row * rank + k]);
        sum0 = hn::Add(sum0, hn::Mul(w, hn::LoadU(d, strip.data() + k * width)));
        sum1 = hn::Add(sum1, hn::Mul(w, hn::LoadU(d, strip.data() + k * width + lanes)));
      }
      hn::StoreU(sum0, d, out + row * columns + column);
      hn::StoreU(sum1, d, out + row * columns + column + lanes);
    }
  }
  for (size_t row = begin; row < end; ++row) {
    for (size_t j = column; j < columns; ++j) {
      float sum = 0;
      for (size_t k = 0; k < rank; ++k) sum += left[row * rank + k] * right[k * columns + j];
      out[row * columns + j] = sum;
    }
  }
}

}  // namespace hologram::holotensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::holotensor {
HWY_EXPORT(SumRows);

void rank_one_sum(std::span<const float> left, std::span<const float> right, size_t rows,
                  size_t columns, std::span<float> out, ThreadPool& pool) {
  if (rows == 0 || columns == 0) return;
  const size_t rank = left.size() / rows;
  const auto sum_rows = HWY_DYNAMIC_DISPATCH(SumRows);
  pool.parallel_for(rows, 4, [&](size_t begin, size_t end) {
    sum_rows(left.data(), right.data(), rank, columns, out.data(), begin, end);
  });
}

}  // namespace hologram::holotensor
#endif
