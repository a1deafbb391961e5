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
    const V scale = hn::Set(d, 1.0f / fold_lanes(d, sums));
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
  const V shift = hn::Set(d, std::log(fold_lanes(d, sums)));
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
  V sums[8];  // folded as fold_lanes does
  for (V& sum : sums) sum = hn::Zero(d);
  for (size_t i = 0; i < n; ++i) {
    const V e = exp(d, hn::Sub(load(x + i * inner), peak));
    sums[i % 8] = hn::Add(sums[i % 8], e);
    if (!logarithm) store(e, y + i * inner);
  }
  for (size_t step = 1; step < 8; step *= 2)
    for (size_t i = 0; i < 8; i += 2 * step) sums[i] = hn::Add(sums[i], sums[i + step]);
  const V sum = sums[0];
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

struct PlainSum {
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
    return hn::Add(sum, v);
  }
};
struct SquareSum {
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
    return hn::Add(sum, hn::Mul(v, v));
  }
};
struct FusedSquareSum {
  template <class V>
  static HWY_INLINE V add(V sum, V v) {
    return hn::MulAdd(v, v, sum);
  }
};
// Sums of x - centre: eight chains, folded to four (to which another four values may be added), to
// two and to one; the last values follow one by one.
template <class Op>
HWY_INLINE float sum_in_eight(const float* x, size_t n, float centre) {
  const hn::CappedTag<float, 8> d8;
  const hn::FixedTag<float, 4> d4;
  using V4 = hn::Vec<decltype(d4)>;
  constexpr size_t kVectors = 8 / hn::MaxLanes(d8);
  hn::Vec<decltype(d8)> sums[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d8);
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (size_t v = 0; v < kVectors; ++v)
      sums[v] =
          Op::add(sums[v], hn::Sub(hn::LoadU(d8, x + i + 8 / kVectors * v), hn::Set(d8, centre)));
  HWY_ALIGN float parts[8];
  for (size_t v = 0; v < kVectors; ++v) hn::Store(sums[v], d8, parts + 8 / kVectors * v);
  V4 four = hn::Add(hn::Load(d4, parts), hn::Load(d4, parts + 4));
  if (i + 4 <= n) {
    four = Op::add(four, hn::Sub(hn::LoadU(d4, x + i), hn::Set(d4, centre)));
    i += 4;
  }
  hn::Store(four, d4, parts);
  V4 sum = hn::Set(d4, (parts[0] + parts[2]) + (parts[1] + parts[3]));
  for (; i < n; ++i) sum = Op::add(sum, hn::Set(d4, x[i] - centre));
  return hn::GetLane(sum);
}

Moments moments_in_order(SumOrder order, const float* x, size_t n, float epsilon) {
  const auto length = static_cast<float>(n);
  float sum = 0;
  if (order == SumOrder::eight) {
    sum = sum_in_eight<PlainSum>(x, n, 0.0f);
  } else {
    size_t i = 0;
    if (order == SumOrder::fours) {
      for (; i + 4 <= n; i += 4) sum = (((x[i] + x[i + 1]) + x[i + 2]) + x[i + 3]) + sum;
      if (i + 2 <= n) {
        sum = (x[i] + x[i + 1]) + sum;
        i += 2;
      }
    }
    for (; i < n; ++i) sum += x[i];
  }
  const float mean = sum / length;
  // Four values of an incomplete last eight are squared and added, what is left is fused again.
  const size_t whole = n / 8 * 8, fours = n / 4 * 4;
  float squares = sum_in_eight<FusedSquareSum>(x, whole, mean);
  for (size_t i = whole; i < n; ++i) {
    const float v = x[i] - mean;
    squares = i < fours ? squares + v * v : std::fma(v, v, squares);
  }
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
  const Moments m = norm.order == SumOrder::tree ? moments(x, n, norm.epsilon, norm.rms)
                                                 : moments_in_order(norm.order, x, n, norm.epsilon);
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

// In the order of ONNX Runtime: a group is a channel.
void norm_channel(const GroupNorm& norm, size_t index) {
  const D d;
  const size_t n = norm.pixels, channel = index % norm.channels;
  const float* x = norm.x + index * n;
  const auto length = static_cast<float>(n);
  const float mean = sum_in_eight<PlainSum>(x, n, 0.0f) / length;
  const float squares = sum_in_eight<SquareSum>(x, n, mean);
  const float inverse = 1.0f / std::sqrt(squares / length + norm.epsilon);
  const float scale = inverse * (norm.scale ? norm.scale[channel] : 1.0f);
  const float shift = (norm.bias ? norm.bias[channel] : 0.0f) - mean * scale;
  const V scales = hn::Set(d, scale), shifts = hn::Set(d, shift);
  map(x, norm.y + index * n, n, 0.0f,
      [&](V v, size_t) HWY_ATTR { return hn::Add(hn::Mul(v, scales), shifts); });
}

void norm_group(const GroupNorm& norm, size_t index) {
  if (norm.order != SumOrder::tree) return norm_channel(norm, index);
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
    pool.parallel_for(outer, row_grain(n), body, Schedule::dynamic, threads);
    return;
  }
  if (inner == 1) {
    const auto row = HWY_DYNAMIC_DISPATCH(softmax_row);
    const auto body = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) row(logarithm, n, x + i * n, y + i * n);
    };
    pool.parallel_for(outer, row_grain(n), body, Schedule::dynamic, threads);
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
  pool.parallel_for(outer * strips, 1, body, Schedule::dynamic, threads);
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
  pool.parallel_for(norm.rows, row_grain(norm.n), body, Schedule::dynamic,
                    norm.rows * norm.n < 32768 ? 1 : 0);
}

void group_norm(const GroupNorm& norm, ThreadPool& pool) {
  if (norm.batch * norm.channels * norm.pixels == 0) return;
  const auto group = HWY_DYNAMIC_DISPATCH(norm_group);
  const auto body = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) group(norm, i);
  };
  pool.parallel_for(norm.batch * norm.groups, 1, body, Schedule::dynamic,
                    norm.batch * norm.channels * norm.pixels < 32768 ? 1 : 0);
}
}  // namespace hologram::backends::dense
#endif
