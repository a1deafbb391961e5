// The epilogue over one run of finished sums, for the code of one CPU level.
#if defined(HOLOGRAM_DENSE_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_FINISH_INL_H_
#undef HOLOGRAM_DENSE_FINISH_INL_H_
#else
#define HOLOGRAM_DENSE_FINISH_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/cpu/dense/epilogue.h"
#include "backends/cpu/dense/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

// The range a clip or a relu keeps; `clips` is false for the other activations.
struct ClipRange {
  bool clips;
  float low, high;
};
HWY_INLINE ClipRange clip_range(const Epilogue& e) {
  if (e.activation == Activation::relu) return {true, 0.0f, HUGE_VALF};
  return {e.activation == Activation::clip, e.first, e.second};
}

// True when the epilogue is no more than bias, residual and a clip: cheap enough for registers.
HWY_INLINE bool is_direct(const Epilogue& e) {
  return e.alpha == 1.0f && !e.program && (!e.bias || e.bias_axis == BiasAxis::column) &&
         (!e.residual || (e.residual_scale == 1.0f && !e.residual_last)) &&
         (e.activation == Activation::none || e.activation == Activation::relu ||
          e.activation == Activation::clip);
}

// values = epilogue(values), program excepted. `bias` has a value a column or is null; `constant`
// is added to all; `residual` is null or has `count` values. Only `count` elements are touched.
HWY_INLINE void finish_run(const Epilogue& e, float* values, size_t count, const float* bias,
                           float constant, const float* residual) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const V alpha = hn::Set(d, e.alpha), scale = hn::Set(d, e.residual_scale);
  const V constants = hn::Set(d, constant);
  with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
    const auto step = [&](float* v, const float* b, const float* r) HWY_ATTR {
      V x = hn::LoadU(d, v);
      if (e.alpha != 1.0f) x = hn::Mul(x, alpha);
      if (b) x = hn::Add(x, hn::LoadU(d, b));
      if (constant != 0.0f) x = hn::Add(x, constants);
      if (r && !e.residual_last) x = hn::MulAdd(scale, hn::LoadU(d, r), x);
      x = function(x);
      if (r && e.residual_last) x = hn::MulAdd(scale, hn::LoadU(d, r), x);
      hn::StoreU(x, d, v);
    };
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      step(values + i, bias ? bias + i : nullptr, residual ? residual + i : nullptr);
    if (i == count) return;
    HWY_ALIGN float v[kLanes] = {}, b[kLanes] = {}, r[kLanes] = {};
    for (size_t j = i; j < count; ++j) {
      v[j - i] = values[j];
      if (bias) b[j - i] = bias[j];
      if (residual) r[j - i] = residual[j];
    }
    step(v, bias ? b : nullptr, residual ? r : nullptr);
    for (size_t j = i; j < count; ++j) values[j] = v[j - i];
  });
}

// turned[column * 16 + row] = sums[row * stride + column], rows and columns rounded up to four:
// `sums` must have that many. At most 16 rows.
HWY_INLINE void turn_tile(const float* sums, size_t stride, size_t rows, size_t columns,
                          float* turned) {
  const hn::FixedTag<float, 4> d;
  for (size_t r = 0; r < rows; r += 4) {
    for (size_t j = 0; j < columns; j += 4) {
      const float* from = sums + r * stride + j;
      const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + stride);
      const auto r2 = hn::LoadU(d, from + 2 * stride), r3 = hn::LoadU(d, from + 3 * stride);
      const auto l02 = hn::InterleaveLower(d, r0, r2), l13 = hn::InterleaveLower(d, r1, r3);
      const auto u02 = hn::InterleaveUpper(d, r0, r2), u13 = hn::InterleaveUpper(d, r1, r3);
      float* to = turned + j * 16 + r;
      hn::StoreU(hn::InterleaveLower(d, l02, l13), d, to);
      hn::StoreU(hn::InterleaveUpper(d, l02, l13), d, to + 16);
      hn::StoreU(hn::InterleaveLower(d, u02, u13), d, to + 32);
      hn::StoreU(hn::InterleaveUpper(d, u02, u13), d, to + 48);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
