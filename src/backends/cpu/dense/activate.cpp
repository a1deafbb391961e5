#include "backends/cpu/dense/activate.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/activate.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/math-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class F>
HWY_INLINE void map_run(const F& function, const float* x, float* y, size_t count) {
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(function(hn::LoadU(d, x + i)), d, y + i);
  if (i == count) return;
  HWY_ALIGN float rest[kLanes] = {};
  std::copy(x + i, x + count, rest);
  hn::Store(function(hn::Load(d, rest)), d, rest);
  std::copy(rest, rest + (count - i), y + i);
}

void activate_array(Activation activation, float first, float second, const float* x, float* y,
                    size_t count) {
  with_activation(D(), activation, first, second,
                  [&](auto function) HWY_ATTR { map_run(function, x, y, count); });
}

void apply_array(Function function, const float* x, float* y, size_t count) {
  const D d;
  switch (function) {
    case Function::exp:
      return map_run([=](V v) HWY_ATTR { return exp(d, v); }, x, y, count);
    case Function::log:
      return map_run([=](V v) HWY_ATTR { return log(d, v); }, x, y, count);
    case Function::tanh:
      return map_run([=](V v) HWY_ATTR { return tanh(d, v); }, x, y, count);
    case Function::erf:
      return map_run([=](V v) HWY_ATTR { return erf(d, v); }, x, y, count);
    case Function::sigmoid:
      return map_run([=](V v) HWY_ATTR { return sigmoid(d, v); }, x, y, count);
    case Function::sin:
      return map_run([=](V v) HWY_ATTR { return sine_quarter(d, v, 0); }, x, y, count);
    case Function::cos:
      return map_run([=](V v) HWY_ATTR { return sine_quarter(d, v, 1); }, x, y, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(activate_array);
HWY_EXPORT(apply_array);

void activate(Activation activation, float first, float second, const float* x, float* y,
              size_t count, ThreadPool& pool) {
  const auto run = HWY_DYNAMIC_DISPATCH(activate_array);
  const auto body = [&](size_t begin, size_t end) {
    run(activation, first, second, x + begin, y + begin, end - begin);
  };
  pool.parallel_for(count, 4096, body, Schedule::dynamic, count < 32768 ? 1 : 0);
}

void apply(Function function, const float* x, float* y, size_t count) {
  HWY_DYNAMIC_DISPATCH(apply_array)(function, x, y, count);
}
}  // namespace hologram::backends::dense
#endif
