// The epilogue over one run of finished sums, for the code of one CPU level.
#if defined(HOLOGRAM_DENSE_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOLOGRAM_DENSE_FINISH_INL_H_
#undef HOLOGRAM_DENSE_FINISH_INL_H_
#else
#define HOLOGRAM_DENSE_FINISH_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/cpu/dense/direct_epilogue.h"
#include "backends/cpu/dense/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

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
  if (e.post)
    x = hn::Max(hn::MulAdd(x, hn::Set(d, e.post_scale), hn::Set(d, e.post_shift)),
                hn::Set(d, e.post_low));
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

// Where the columns of a turned tile go: column j at place(j), its pixels `pixel` apart.
struct TurnedOutput {
  float* c;
  const float* residual;  // null, or lies as c does
  size_t offset;          // of c from the output's start
  ptrdiff_t pixel, channel, block;
  ptrdiff_t place(size_t column) const {
    return static_cast<ptrdiff_t>(column / 16) * block +
           static_cast<ptrdiff_t>(column % 16) * channel;
  }
};

// A call of memcpy costs more than the few values of a run.
HWY_INLINE void copy_short(const float* from, size_t count, float* to) {
  const hn::FixedTag<float, 4> d;
  size_t i = 0;
  for (; i + 4 <= count; i += 4) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  for (; i < count; ++i) to[i] = from[i];
}

// Epilogue and store of turned[column][16 rows], of which `rows` exist. `bias` has a value a column
// or is null.
HWY_INLINE void finish_turned(const Epilogue& e, float* turned, size_t rows, size_t columns,
                              const float* bias, const TurnedOutput& out) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN float other[16] = {};
  with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
    for (size_t j = 0; j < columns; ++j) {
      const ptrdiff_t place = out.place(j);
      float* values = turned + j * 16;
      if (out.residual && out.pixel == 1) {
        copy_short(out.residual + place, rows, other);
      } else if (out.residual) {
        for (size_t r = 0; r < rows; ++r)
          other[r] = out.residual[place + static_cast<ptrdiff_t>(r) * out.pixel];
      }
      for (size_t r = 0; r < 16; r += kLanes)
        hn::StoreU(finish_vector(d, e, function, hn::LoadU(d, values + r), nullptr,
                                 bias ? bias[j] : 0.0f, out.residual ? other + r : nullptr),
                   d, values + r);
      if (out.pixel == 1) {
        if (e.program)
          e.program(e.program_context, values, rows, out.offset + static_cast<size_t>(place));
        copy_short(values, rows, out.c + place);
        continue;
      }
      for (size_t r = 0; r < rows; ++r) {
        const ptrdiff_t at = place + static_cast<ptrdiff_t>(r) * out.pixel;
        if (e.program)
          e.program(e.program_context, values + r, 1, out.offset + static_cast<size_t>(at));
        out.c[at] = values[r];
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();
#endif
