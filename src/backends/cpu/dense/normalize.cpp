#include "backends/cpu/dense/normalize.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/normalize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/math-inl.h"
#include "backends/cpu/dense/reduce-inl.h"

#ifndef HOLOGRAM_DENSE_NORMALIZE_ONCE_
#define HOLOGRAM_DENSE_NORMALIZE_ONCE_
namespace hologram::backends::dense {
inline constexpr size_t kShortRow = 8;  // values that fill too little of a vector
}
#endif

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// f(vector, index) for every vector of x, the result stored in y; the last, incomplete vector comes
// padded with `fill`.
template <class F>
HWY_INLINE void map(const float* x, float* y, size_t n, float fill, const F& f) {
  const D d;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(hn::LoadU(d, x + i), i), d, y + i);
  if (i == n) return;
  HWY_ALIGN float rest[kLanes];
  std::fill_n(rest, kLanes, fill);
  std::copy(x + i, x + n, rest);
  hn::Store(f(hn::Load(d, rest), i), d, rest);
  std::copy(rest, rest + (n - i), y + i);
}

void softmax_row(bool logarithm, size_t n, const float* x, float* y) {
  const D d;
  const float peak = reduce_run<MaxOf>(x, n);
  const V peaks = hn::Set(d, peak);
  V sums = hn::Zero(d);
  const auto weigh = [&](V v, size_t) HWY_ATTR {
    const V e = exp(d, hn::Sub(v, peaks));
    sums = hn::Add(sums, e);
    return e;
  };
  if (!logarithm) {
    map(x, y, n, -HUGE_VALF, weigh);
    const V scale = hn::Set(d, 1.0f / combine_lanes<SumOf>(d, sums));
    map(y, y, n, 0.0f, [&](V v, size_t) HWY_ATTR { return hn::Mul(v, scale); });
    return;
  }
  // The weights themselves are not kept.
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) weigh(hn::LoadU(d, x + i), i);
  if (i < n) {
    HWY_ALIGN float rest[kLanes];
    std::fill_n(rest, kLanes, -HUGE_VALF);
    std::copy(x + i, x + n, rest);
    weigh(hn::Load(d, rest), i);
  }
  const V shift = hn::Set(d, std::log(combine_lanes<SumOf>(d, sums)));
  map(x, y, n, 0.0f, [&](V v, size_t) HWY_ATTR { return hn::Sub(hn::Sub(v, peaks), shift); });
}

// `count` neighbouring columns (at most a vector) of an (n, inner) matrix.
void softmax_vector(bool logarithm, size_t n, size_t inner, size_t count, const float* x,
                    float* y) {
  const D d;
  HWY_ALIGN float buffer[kLanes] = {};
  const auto load = [&](const float* from) HWY_ATTR {
    if (count == kLanes) return hn::LoadU(d, from);
    std::copy_n(from, count, buffer);
    return hn::Load(d, buffer);
  };
  const auto store = [&](V v, float* to) HWY_ATTR {
    if (count == kLanes) return hn::StoreU(v, d, to);
    hn::Store(v, d, buffer);
    std::copy_n(buffer, count, to);
  };
  V peak = hn::Set(d, -HUGE_VALF);
  for (size_t i = 0; i < n; ++i) peak = MaxOf::combine(peak, load(x + i * inner));
  V sum = hn::Zero(d);
  for (size_t i = 0; i < n; ++i) {
    const V e = exp(d, hn::Sub(load(x + i * inner), peak));
    sum = hn::Add(sum, e);
    if (!logarithm) store(e, y + i * inner);
  }
  const V last = logarithm ? log(d, sum) : hn::Div(hn::Set(d, 1.0f), sum);
  for (size_t i = 0; i < n; ++i) {
    const V v = logarithm ? hn::Sub(hn::Sub(load(x + i * inner), peak), last)
                          : hn::Mul(load(y + i * inner), last);
    store(v, y + i * inner);
  }
}

void softmax_columns(bool logarithm, size_t n, size_t inner, size_t count, const float* x,
                     float* y) {
  for (size_t j = 0; j < count; j += kLanes)
    softmax_vector(logarithm, n, inner, std::min(kLanes, count - j), x + j, y + j);
}

// Rows of at most kShortRow values: a vector of rows at a time.
void softmax_short(bool logarithm, size_t n, size_t rows, const float* x, float* y) {
  HWY_ALIGN float turned[kShortRow * kLanes];
  for (size_t r = 0; r < rows; r += kLanes, x += n * kLanes, y += n * kLanes) {
    const size_t count = std::min(kLanes, rows - r);
    for (size_t j = 0; j < count; ++j)
      for (size_t i = 0; i < n; ++i) turned[i * kLanes + j] = x[j * n + i];
    softmax_vector(logarithm, n, kLanes, count, turned, turned);
    for (size_t j = 0; j < count; ++j)
      for (size_t i = 0; i < n; ++i) y[j * n + i] = turned[i * kLanes + j];
  }
}

// Mean (0 when rms) and 1 / sqrt(variance + epsilon), in two passes over cached values.
struct Moments {
  float mean, inverse;
};
Moments moments(const float* x, size_t n, float epsilon, bool rms) {
  const D d;
  const auto length = static_cast<float>(n);
  const float mean = rms ? 0.0f : reduce_run<SumOf>(x, n) / length;
  const V means = hn::Set(d, mean);
  const size_t whole = n / kLanes * kLanes;
  float squares = reduce_with<SumOf>(d, whole, [&](size_t i) HWY_ATTR {
    const V v = hn::Sub(hn::LoadU(d, x + i), means);
    return hn::Mul(v, v);
  });
  for (size_t i = whole; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1.0f / std::sqrt(squares / length + epsilon)};
}

void norm_row(const RowNorm& norm, size_t row) {
  const D d;
  const size_t n = norm.n;
  const float* x = norm.x + row * n;
  float* y = norm.y + row * n;
  if (norm.residual) {
    const float* residual = norm.residual + row * n;
    float* sum = norm.sum ? norm.sum + row * n : y;
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, residual + i)), d, sum + i);
    for (; i < n; ++i) sum[i] = x[i] + residual[i];
    x = sum;
  }
  const Moments m = moments(x, n, norm.epsilon, norm.rms);
  const V mean = hn::Set(d, m.mean), inverse = hn::Set(d, m.inverse);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    V v = hn::Mul(hn::Sub(hn::LoadU(d, x + i), mean), inverse);
    if (norm.scale) v = hn::Mul(v, hn::LoadU(d, norm.scale + i));
    if (norm.bias) v = hn::Add(v, hn::LoadU(d, norm.bias + i));
    hn::StoreU(v, d, y + i);
  }
  for (; i < n; ++i) {
    float v = (x[i] - m.mean) * m.inverse;
    if (norm.scale) v = v * norm.scale[i];
    if (norm.bias) v = v + norm.bias[i];
    y[i] = v;
  }
  if (norm.mean) norm.mean[row] = m.mean;
  if (norm.inverse_deviation) norm.inverse_deviation[row] = m.inverse;
}

void norm_group(const GroupNorm& norm, size_t index) {
  const D d;
  const size_t channels = norm.channels / norm.groups, group = index % norm.groups;
  const float* x = norm.x + index * channels * norm.pixels;
  float* y = norm.y + index * channels * norm.pixels;
  const size_t n = channels * norm.pixels, whole = n / kLanes * kLanes;
  const Moments m = moments(x, n, norm.epsilon, false);
  // Groups are long, and a mean far from 0 is rounded by much of what is left without it: the mean
  // of that goes into the bias. (Of the variance it is the square, and too small to count.)
  const V centre = hn::Set(d, m.mean);
  float rest = reduce_with<SumOf>(
      d, whole, [&](size_t i) HWY_ATTR { return hn::Sub(hn::LoadU(d, x + i), centre); });
  for (size_t i = whole; i < n; ++i) rest += x[i] - m.mean;
  rest /= static_cast<float>(n);
  for (size_t c = 0; c < channels; ++c) {
    const size_t channel = group * channels + c;
    const float scale = m.inverse * (norm.scale ? norm.scale[channel] : 1.0f);
    const float bias = (norm.bias ? norm.bias[channel] : 0.0f) - rest * scale;
    const V scales = hn::Set(d, scale), biases = hn::Set(d, bias);
    map(x + c * norm.pixels, y + c * norm.pixels, norm.pixels, 0.0f,
        [&](V v, size_t) HWY_ATTR { return hn::MulAdd(hn::Sub(v, centre), scales, biases); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_short);
HWY_EXPORT(softmax_columns);
HWY_EXPORT(norm_row);
HWY_EXPORT(norm_group);

namespace {

// Rows a piece should have so that waking a thread pays.
size_t row_grain(size_t n) { return std::max<size_t>(1, 8192 / std::max<size_t>(n, 1)); }

void any_softmax(bool logarithm, size_t outer, size_t n, size_t inner, const float* x, float* y,
                 ThreadPool& pool) {
  if (outer * n * inner == 0) return;
  const unsigned threads = outer * n * inner < 16384 ? 1 : 0;
  if (inner == 1 && n <= kShortRow) {
    const auto short_rows = HWY_DYNAMIC_DISPATCH(softmax_short);
    const auto body = [&](size_t begin, size_t end) {
      short_rows(logarithm, n, end - begin, x + begin * n, y + begin * n);
    };
    pool.parallel_for(outer, row_grain(n), body, Schedule::fixed, threads);
    return;
  }
  if (inner == 1) {
    const auto row = HWY_DYNAMIC_DISPATCH(softmax_row);
    const auto body = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) row(logarithm, n, x + i * n, y + i * n);
    };
    pool.parallel_for(outer, row_grain(n), body, Schedule::fixed, threads);
    return;
  }
  const auto columns = HWY_DYNAMIC_DISPATCH(softmax_columns);
  constexpr size_t width = 64;
  const size_t strips = (inner + width - 1) / width;
  const auto body = [&](size_t begin, size_t end) {
    for (size_t job = begin; job < end; ++job) {
      const size_t j = job % strips * width, place = job / strips * n * inner + j;
      columns(logarithm, n, inner, std::min(width, inner - j), x + place, y + place);
    }
  };
  pool.parallel_for(outer * strips, 1, body, Schedule::fixed, threads);
}

}  // namespace

void softmax(size_t outer, size_t n, size_t inner, const float* x, float* y, ThreadPool& pool) {
  any_softmax(false, outer, n, inner, x, y, pool);
}

void log_softmax(size_t outer, size_t n, size_t inner, const float* x, float* y, ThreadPool& pool) {
  any_softmax(true, outer, n, inner, x, y, pool);
}

void row_norm(const RowNorm& norm, ThreadPool& pool) {
  if (norm.rows * norm.n == 0) return;
  const auto row = HWY_DYNAMIC_DISPATCH(norm_row);
  const auto body = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) row(norm, i);
  };
  pool.parallel_for(norm.rows, row_grain(norm.n), body, Schedule::fixed,
                    norm.rows * norm.n < 32768 ? 1 : 0);
}

void group_norm(const GroupNorm& norm, ThreadPool& pool) {
  if (norm.batch * norm.channels * norm.pixels == 0) return;
  const auto group = HWY_DYNAMIC_DISPATCH(norm_group);
  const auto body = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) group(norm, i);
  };
  pool.parallel_for(norm.batch * norm.groups, 1, body, Schedule::fixed,
                    norm.batch * norm.channels * norm.pixels < 32768 ? 1 : 0);
}
}  // namespace hologram::backends::dense
#endif
