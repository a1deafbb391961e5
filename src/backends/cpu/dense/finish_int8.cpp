#include "backends/cpu/dense/finish_int8.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/finish_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;

// x / divisor as the instruction rounds it, for a third of its time: with the reciprocal rounded to
// nearest, one step by fused products leaves the nearest quotient (Markstein). Only where nothing
// can overflow; otherwise, and without fused products, it is the instruction.
struct Divisor {
  float value, reciprocal;
  bool exact;
  explicit Divisor(float v)
      : value(v), reciprocal(1.0f / v), exact(HWY_NATIVE_FMA && v > 1e-10f && v < 1e10f) {}
};

template <typename T, bool kExact>
void finish_as(const Int8Bytes& f, const int32_t* sums, const Divisor& divisor) {
  const DF df;
  const DI di;
  const hn::Rebind<T, DI> d8;
  constexpr size_t kLanes = hn::MaxLanes(di);
  // What is beyond these is beyond every byte as well.
  const auto least = hn::Set(df, kExact && f.low < -1e18f ? -1e18f : f.low);
  const auto most = hn::Set(df, kExact && f.high > 1e18f ? 1e18f : f.high);
  const auto by = hn::Set(df, divisor.value), inverse = hn::Set(df, divisor.reciprocal);
  const auto output_zero = hn::Set(df, static_cast<float>(f.quantizer.zero));
  const auto low = hn::Set(df, static_cast<float>(f.quantizer.low));
  const auto high = hn::Set(df, static_cast<float>(f.quantizer.high));
  for (size_t j = 0; j < f.columns; j += kLanes) {
    const auto base = hn::LoadU(di, f.base + j);
    const auto zero = f.zeros ? hn::LoadU(di, f.zeros + j) : hn::Zero(di);
    const auto scale = hn::LoadU(df, f.scales + j);
    const auto bias = f.biases ? hn::LoadU(df, f.biases + j) : hn::Zero(df);
    const size_t count = f.columns - j;
    for (size_t r = 0; r < f.rows; ++r) {
      auto v = hn::Add(hn::LoadU(di, sums + r * f.width + j), base);
      if (f.zeros) v = hn::Sub(v, hn::Mul(hn::Set(di, f.row_sums[r]), zero));
      auto x = hn::Mul(hn::ConvertTo(df, v), scale);
      if (f.biases) x = hn::Add(x, bias);
      x = hn::Min(hn::Max(x, least), most);
      hn::Vec<DF> quotient;
      if constexpr (kExact) {
        const auto near = hn::Mul(x, inverse);
        quotient = hn::MulAdd(hn::NegMulAdd(near, by, x), inverse, near);
      } else {
        quotient = hn::Div(x, by);
      }
      auto rounded = hn::Add(hn::Round(quotient), output_zero);
      rounded = hn::Min(hn::Max(rounded, low), high);
      const auto bytes = hn::DemoteTo(d8, hn::ConvertTo(di, rounded));
      auto* to = reinterpret_cast<T*>(f.to) + r * f.to_row + j;
      if (count >= kLanes) {
        hn::StoreU(bytes, d8, to);
      } else {
        HWY_ALIGN T rest[kLanes];
        hn::Store(bytes, d8, rest);
        std::memcpy(to, rest, count);
      }
    }
  }
}

template <typename T>
void finish_type(const Int8Bytes& f, const int32_t* sums) {
  const Divisor divisor(f.quantizer.scale);
#if HWY_NATIVE_FMA
  if (divisor.exact) return finish_as<T, true>(f, sums, divisor);
#endif
  finish_as<T, false>(f, sums, divisor);
}

void finish_bytes(const Int8Bytes& f, const int32_t* sums) {
  if (f.quantizer.low < 0)
    finish_type<int8_t>(f, sums);
  else
    finish_type<uint8_t>(f, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(finish_bytes);

void finish_int8_bytes(const Int8Bytes& finish, const int32_t* sums) {
  HWY_DYNAMIC_DISPATCH(finish_bytes)(finish, sums);
}

bool finishes_int8_bytes(const Epilogue& e, Int8Bytes& finish) {
  if (e.alpha != 1.0f || e.residual || e.post || e.program ||
      (e.bias && e.bias_axis != BiasAxis::column))
    return false;
  if (e.activation == Activation::relu) finish.low = 0;
  if (e.activation == Activation::clip) finish.low = e.first, finish.high = e.second;
  return e.activation == Activation::none || e.activation == Activation::relu ||
         e.activation == Activation::clip;
}
}  // namespace hologram::backends::dense
#endif
