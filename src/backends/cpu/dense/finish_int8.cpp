#include "backends/cpu/dense/finish_int8.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/finish_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/int8_vnni.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;

template <typename T>
void finish_type(const Int8Bytes& f, const int32_t* sums) {
  const DF df;
  const DI di;
  const hn::Rebind<T, DI> d8;
  constexpr size_t kLanes = hn::MaxLanes(di);
  const auto low = hn::Set(df, f.codes.least), high = hn::Set(df, f.codes.most);
  const auto magic = hn::Set(df, Int8Codes::kMagic);
  const auto offset = hn::Set(di, f.codes.offset);
  for (size_t j = 0; j < f.columns; j += kLanes) {
    const auto base = hn::LoadU(di, f.base + j);
    const auto zeros = f.zeros ? hn::LoadU(di, f.zeros + j) : hn::Zero(di);
    const auto scale = hn::LoadU(df, f.scales + j);
    const auto bias = f.biases ? hn::LoadU(df, f.biases + j) : hn::Zero(df);
    const size_t count = f.columns - j;
    for (size_t r = 0; r < f.rows; ++r) {
      auto v = hn::Add(hn::LoadU(di, sums + r * f.width + j), base);
      if (f.zeros) v = hn::Sub(v, hn::Mul(hn::Set(di, f.row_sums[r]), zeros));
      const auto x = hn::MulAdd(hn::ConvertTo(df, v), scale, bias);
      const auto near = hn::Add(hn::Min(hn::Max(x, low), high), magic);
      const auto bytes = hn::DemoteTo(d8, hn::Sub(hn::BitCast(di, near), offset));
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

void finish_bytes(const Int8Bytes& f, const int32_t* sums) {
#if HWY_TARGET == HWY_AVX3
  const detail::FinishBytesFunction narrow = detail::avx512_finish_bytes();
  if (narrow && !f.zeros && f.width <= 32) return narrow(f, sums);
#endif
  if (f.codes.is_signed)
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

bool finishes_int8_bytes(const Epilogue& e, const Quantizer& quantizer, Int8Codes& codes) {
  if (e.alpha != 1.0f || e.residual || e.post || e.program ||
      (e.bias && e.bias_axis != BiasAxis::column))
    return false;
  float low = -HUGE_VALF, high = HUGE_VALF;
  if (e.activation == Activation::relu) low = 0;
  if (e.activation == Activation::clip) low = e.first, high = e.second;
  codes = Int8Codes(quantizer, low, high);
  return e.activation == Activation::none || e.activation == Activation::relu ||
         e.activation == Activation::clip;
}
}  // namespace hologram::backends::dense
#endif
