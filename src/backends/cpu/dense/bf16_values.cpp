#include "backends/cpu/dense/bf16_values.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/bf16_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/bf16_values-inl.h"
#include "backends/cpu/dense/tile.h"
#include "support/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

void narrow_run(const float* from, size_t count, uint16_t* to) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_value(d, hn::LoadU(d, from + i), to + i);
  for (; i < count; ++i) to[i] = f32_to_bf16(from[i]);
}

void widen_run(const uint16_t* from, size_t count, float* to) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(load_value(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = bf16_to_f32(from[i]);
}

void join_run(const uint16_t* first, const uint16_t* second, size_t pixels, size_t step,
              uint32_t* units) {
  const hn::CappedTag<uint16_t, kChunk> d;
  const size_t lanes = hn::Lanes(d);
  auto* to = reinterpret_cast<uint16_t*>(units);
  for (size_t p = 0; p < pixels; ++p, first += step, to += 2 * kChunk)
    for (size_t i = 0; i < kChunk; i += lanes) {
      hn::StoreU(hn::LoadU(d, first + i), d, to + i);
      hn::StoreU(second ? hn::LoadU(d, second + p * step + i) : hn::Zero(d), d, to + kChunk + i);
    }
}

detail::NarrowFunction get_narrow() {
#if HWY_TARGET == HWY_AVX3
  if (detail::avx512_bf16_narrow()) return detail::avx512_bf16_narrow();
#endif
  return &narrow_run;
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(get_narrow);
HWY_EXPORT(widen_run);
HWY_EXPORT(join_run);

void narrow_values(const float* from, size_t count, uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(get_narrow)()(from, count, to);
}
void widen_values(const uint16_t* from, size_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_run)(from, count, to);
}
void join_pixels(const uint16_t* first, const uint16_t* second, size_t pixels, size_t step,
                 size_t count, uint32_t* units) {
  if (count == 2 * kChunk || count == kChunk)
    return HWY_DYNAMIC_DISPATCH(join_run)(first, count > kChunk ? second : nullptr, pixels, step,
                                          units);
  const size_t upper = std::min(count, kChunk), lower = second ? count - upper : 0;
  auto* to = reinterpret_cast<uint16_t*>(units);
  for (size_t p = 0; p < pixels; ++p, to += 2 * kChunk) {
    std::memset(to, 0, 2 * kChunk * sizeof(uint16_t));
    std::memcpy(to, first + p * step, upper * sizeof(uint16_t));
    if (lower) std::memcpy(to + kChunk, second + p * step, lower * sizeof(uint16_t));
  }
}
}  // namespace hologram::backends::dense
#endif
