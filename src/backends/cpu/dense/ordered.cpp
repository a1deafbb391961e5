#include "backends/cpu/dense/ordered.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/ordered.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One vector of columns; load(k) is theirs of row k.
template <class D, class Load>
HWY_INLINE hn::Vec<D> columns_by_fours(D d, size_t k, const float* a, const Load& load) {
  using V = hn::Vec<D>;
  const auto product = [&](size_t i) HWY_ATTR { return hn::Mul(hn::Set(d, a[i]), load(i)); };
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const V three = hn::Add(hn::Add(product(i), product(i + 1)), product(i + 2));
    sum = hn::Add(hn::Add(three, product(i + 3)), sum);
  }
  if (i + 2 <= k) {
    sum = hn::Add(hn::Add(product(i), product(i + 1)), sum);
    i += 2;
  }
  return i < k ? hn::Add(product(i), sum) : sum;
}

void by_fours(size_t n, size_t k, const float* a, const float* b, size_t ldb, float* c) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    hn::StoreU(
        columns_by_fours(d, k, a, [&](size_t i) HWY_ATTR { return hn::LoadU(d, b + i * ldb + j); }),
        d, c + j);
  const hn::CappedTag<float, 1> d1;
  for (; j < n; ++j)
    c[j] = hn::GetLane(
        columns_by_fours(d1, k, a, [&](size_t i) HWY_ATTR { return hn::Set(d1, b[i * ldb + j]); }));
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(by_fours);
void row_by_fours(size_t n, size_t k, const float* a, const float* b, size_t ldb, float* c) {
  HWY_DYNAMIC_DISPATCH(by_fours)(n, k, a, b, ldb, c);
}
}  // namespace hologram::backends::dense
#endif
