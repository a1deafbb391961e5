#include "backends/cpu/dense/reduce.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/reduce.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

float end_value(Reduction reduction, float value, size_t n) {
  if (reduction == Reduction::mean) return value / static_cast<float>(n);
  if (reduction == Reduction::root_of_squares) return std::sqrt(value);
  return value;
}

// Rows `first`..`past` of n consecutive values.
template <class Op>
void reduce_rows(Reduction reduction, size_t first, size_t past, size_t n, const float* x,
                 float* y) {
  for (size_t row = first; row < past; ++row)
    y[row] = end_value(reduction, reduce_run<Op>(x + row * n, n), n);
}

// Columns first..past of one (n, inner) matrix. Rows are combined in blocks of 32 and the blocks in
// order, which keeps the rounding of a long sum small.
template <class Op>
void reduce_columns(Reduction reduction, size_t first, size_t past, size_t n, size_t inner,
                    const float* x, float* y) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  constexpr size_t kRows = 32;
  // Two vectors a pass, so that whole cache lines of a row are used.
  size_t j = first;
  for (; j + 2 * kLanes <= past; j += 2 * kLanes) {
    const auto neutral = hn::Set(d, Op::kNeutral);
    auto t0 = neutral, t1 = neutral;
    for (size_t i0 = 0; i0 < n; i0 += kRows) {
      auto r0 = neutral, r1 = neutral;
      for (size_t i = i0; i < std::min(n, i0 + kRows); ++i) {
        const float* row = x + i * inner + j;
        r0 = Op::combine(r0, Op::take(hn::LoadU(d, row)));
        r1 = Op::combine(r1, Op::take(hn::LoadU(d, row + kLanes)));
      }
      t0 = Op::combine(t0, r0);
      t1 = Op::combine(t1, r1);
    }
    hn::StoreU(t0, d, y + j);
    hn::StoreU(t1, d, y + j + kLanes);
  }
  for (; j < past; j += kLanes) {
    const size_t count = std::min(kLanes, past - j);
    HWY_ALIGN float values[kLanes] = {};
    auto total = hn::Set(d, Op::kNeutral);
    for (size_t i0 = 0; i0 < n; i0 += kRows) {
      auto r = hn::Set(d, Op::kNeutral);
      for (size_t i = i0; i < std::min(n, i0 + kRows); ++i) {
        std::copy_n(x + i * inner + j, count, values);
        r = Op::combine(r, Op::take(hn::Load(d, values)));
      }
      total = Op::combine(total, r);
    }
    hn::Store(total, d, values);
    std::copy_n(values, count, y + j);
  }
  for (size_t k = first; k < past; ++k) y[k] = end_value(reduction, y[k], n);
}

struct ReduceCode {
  void (*rows)(Reduction, size_t, size_t, size_t, const float*, float*);
  void (*columns)(Reduction, size_t, size_t, size_t, size_t, const float*, float*);
};
template <class Op>
constexpr ReduceCode kCode = {&reduce_rows<Op>, &reduce_columns<Op>};

ReduceCode reduce_code(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      return kCode<SumOf>;
    case Reduction::max:
      return kCode<MaxOf>;
    case Reduction::min:
      return kCode<MinOf>;
    case Reduction::product:
      return kCode<ProductOf>;
    case Reduction::sum_of_squares:
    case Reduction::root_of_squares:
      return kCode<SquaresOf>;
    case Reduction::sum_of_magnitudes:
      return kCode<MagnitudesOf>;
  }
  return kCode<SumOf>;
}

// Wraps the struct in something HWY_EXPORT can return from any level.
void reduce_part(Reduction reduction, size_t outer, size_t first, size_t past, size_t n,
                 size_t inner, const float* x, float* y) {
  const ReduceCode code = reduce_code(reduction);
  if (inner == 1)
    code.rows(reduction, first, past, n, x, y);
  else
    code.columns(reduction, first, past, n, inner, x + outer * n * inner, y + outer * inner);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(reduce_part);

void reduce(Reduction reduction, size_t outer, size_t n, size_t inner, const float* x, float* y,
            ThreadPool& pool) {
  if (outer * inner == 0) return;
  const auto part = HWY_DYNAMIC_DISPATCH(reduce_part);
  const unsigned threads = outer * n * inner < 65536 ? 1 : 0;
  if (inner == 1) {
    const size_t grain = std::max<size_t>(1, 16384 / std::max<size_t>(n, 1));
    const auto body = [&](size_t begin, size_t end) { part(reduction, 0, begin, end, n, 1, x, y); };
    pool.parallel_for(outer, grain, body, Schedule::fixed, threads);
    return;
  }
  // Strips of columns; their width changes no column's chain.
  constexpr size_t kStrip = 256;
  const size_t strips = (inner + kStrip - 1) / kStrip;
  const auto body = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const size_t first = job % strips * kStrip;
      part(reduction, job / strips, first, std::min(first + kStrip, inner), n, inner, x, y);
    }
  };
  pool.parallel_for(outer * strips, 1, body, Schedule::fixed, threads);
}
}  // namespace hologram::backends::dense
#endif
