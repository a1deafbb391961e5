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

// One vector through the epilogue, program excepted. The pointers may be null.
template <class D, class F>
HWY_INLINE hn::Vec<D> finish_vector(D d, const Epilogue& e, const F& function, hn::Vec<D> x,
                                    const float* bias, float constant, const float* residual) {
  if (e.alpha != 1.0f) x = hn::Mul(x, hn::Set(d, e.alpha));
  if (bias) x = hn::Add(x, hn::LoadU(d, bias));
  if (constant != 0.0f) x = hn::Add(x, hn::Set(d, constant));
  const auto scale = hn::Set(d, e.residual_scale);
  if (residual && !e.residual_last) x = hn::MulAdd(scale, hn::LoadU(d, residual), x);
  x = function(x);
  if (residual && e.residual_last) x = hn::MulAdd(scale, hn::LoadU(d, residual), x);
  return x;
}

// The same for fewer values than a vector has; touches no others.
template <class D, class F>
HWY_INLINE void finish_tail(D d, const Epilogue& e, const F& function, const float* from,
                            size_t count, const float* bias, float constant, const float* residual,
                            float* to) {
  constexpr size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN float v[kLanes] = {}, b[kLanes] = {}, r[kLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    v[i] = from[i];
    if (bias) b[i] = bias[i];
    if (residual) r[i] = residual[i];
  }
  const auto x = finish_vector(d, e, function, hn::Load(d, v), bias ? b : nullptr, constant,
                               residual ? r : nullptr);
  hn::Store(x, d, v);
  for (size_t i = 0; i < count; ++i) to[i] = v[i];
}

// to = epilogue(from), program excepted: alpha, `constant` added to all, residual, activation.
// Touches `count` elements. from may be to.
HWY_INLINE void finish_run(const Epilogue& e, const float* from, size_t count, float constant,
                           const float* residual, float* to) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      hn::StoreU(finish_vector(d, e, function, hn::LoadU(d, from + i), nullptr, constant,
                               residual ? residual + i : nullptr),
                 d, to + i);
    if (i < count)
      finish_tail(d, e, function, from + i, count - i, nullptr, constant,
                  residual ? residual + i : nullptr, to + i);
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
