#include "backends/cpu/dense/quantize.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
constexpr size_t kLanes = hn::MaxLanes(DF());

Range range_run(const float* values, size_t count) {
  const DF df;
  auto low = hn::Zero(df), high = hn::Zero(df), low1 = low, high1 = high;
  size_t i = 0;
  // The second operand is what a comparison with NaN gives.
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const auto a = hn::LoadU(df, values + i), b = hn::LoadU(df, values + i + kLanes);
    low = hn::Min(a, low), high = hn::Max(a, high);
    low1 = hn::Min(b, low1), high1 = hn::Max(b, high1);
  }
  low = hn::Min(low, low1), high = hn::Max(high, high1);
  Range range{hn::GetLane(hn::MinOfLanes(df, low)), hn::GetLane(hn::MaxOfLanes(df, high))};
  for (; i < count; ++i) {
    if (values[i] < range.low) range.low = values[i];
    if (values[i] > range.high) range.high = values[i];
  }
  return range;
}

template <typename T>
void quantize_as(const Quantizer& q, const float* values, size_t count, uint8_t* bytes) {
  const DF df;
  const DI di;
  const hn::Rebind<T, DI> d8;
  auto* to = reinterpret_cast<T*>(bytes);
  const auto scale = hn::Set(df, q.scale), zero = hn::Set(df, static_cast<float>(q.zero));
  const auto low = hn::Set(df, static_cast<float>(q.low));
  const auto high = hn::Set(df, static_cast<float>(q.high));
  const auto convert = [&](hn::Vec<DF> x) {
    // Rounding comes first, so a tie does not see the zero point.
    auto v = hn::Add(hn::Round(hn::Div(x, scale)), zero);
    v = hn::Min(hn::Max(v, low), high);
    return hn::DemoteTo(d8, hn::ConvertTo(di, v));
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(convert(hn::LoadU(df, values + i)), d8, to + i);
  if (i == count) return;
  HWY_ALIGN float rest[kLanes] = {};
  HWY_ALIGN T result[kLanes];
  std::memcpy(rest, values + i, (count - i) * sizeof(float));
  hn::Store(convert(hn::Load(df, rest)), d8, result);
  std::memcpy(to + i, result, count - i);
}

void quantize_run(const Quantizer& q, const float* values, size_t count, uint8_t* to) {
  if (q.low < 0)
    quantize_as<int8_t>(q, values, count, to);
  else
    quantize_as<uint8_t>(q, values, count, to);
}

template <typename T>
void dequantize_as(const T* values, size_t count, float scale, int32_t zero, float* to) {
  const DF df;
  const DI di;
  const hn::Rebind<T, DI> d8;
  const auto scales = hn::Set(df, scale);
  const auto zeros = hn::Set(di, zero);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto v = hn::Sub(hn::PromoteTo(di, hn::LoadU(d8, values + i)), zeros);
    hn::StoreU(hn::Mul(hn::ConvertTo(df, v), scales), df, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(values[i] - zero) * scale;
}

void dequantize_run(const uint8_t* values, size_t count, bool is_signed, float scale, int32_t zero,
                    float* to) {
  if (is_signed)
    dequantize_as(reinterpret_cast<const int8_t*>(values), count, scale, zero, to);
  else
    dequantize_as(values, count, scale, zero, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(range_run);
HWY_EXPORT(quantize_run);
HWY_EXPORT(dequantize_run);

Range range_of(const float* values, size_t count) {
  return HWY_DYNAMIC_DISPATCH(range_run)(values, count);
}
void quantize(const Quantizer& quantizer, const float* values, size_t count, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(quantize_run)(quantizer, values, count, to);
}
void dequantize(const uint8_t* values, size_t count, bool is_signed, float scale, int32_t zero,
                float* to) {
  HWY_DYNAMIC_DISPATCH(dequantize_run)(values, count, is_signed, scale, zero, to);
}
}  // namespace hologram::backends::dense
#endif
