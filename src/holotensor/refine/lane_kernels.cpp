#include "holotensor/refine/lane_kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "holotensor/refine/lane_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hologram::holotensor::refine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a word of 64 elements is a whole number of vectors.
using F32 = hn::CappedTag<float, 16>;
using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;

// The mask of the `v`-th vector of a word.
template <class D>
HWY_INLINE hn::Mask<D> mask_of(D d, uint64_t word, size_t v) {
  const size_t lanes = hn::Lanes(d);
  uint8_t bits[8];
  const uint64_t shifted = word >> (v * lanes);
  memcpy(bits, &shifted, 8);
  return hn::LoadMaskBits(d, bits);
}

template <class D>
HWY_INLINE uint64_t bits_of_mask(D d, hn::Mask<D> mask, size_t v) {
  uint8_t bits[8] = {};
  hn::StoreMaskBits(d, mask, bits);
  uint64_t word;
  memcpy(&word, bits, 8);
  return word << (v * hn::Lanes(d));
}

void LoadBf16(const std::byte* from, float* out) {
  const F32 f;
  const U32 u;
  const hn::Rebind<uint16_t, F32> half;
  const auto* in = reinterpret_cast<const uint16_t*>(from);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f))
    hn::StoreU(hn::BitCast(f, hn::ShiftLeft<16>(hn::PromoteTo(u, hn::LoadU(half, in + i)))), f,
               out + i);
}

void LoadF16(const std::byte* from, float* out) {
  const F32 f;
  const hn::Rebind<hwy::float16_t, F32> half;
  const auto* in = reinterpret_cast<const hwy::float16_t*>(from);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f))
    hn::StoreU(hn::PromoteTo(f, hn::LoadU(half, in + i)), f, out + i);
}

GroupStatistics Statistics(const float* carriers) {
  const F32 f;
  const U32 u;
  auto squares = hn::Zero(f);
  auto largest = hn::Zero(u);
  size_t zeros = 0;
  const auto magnitude_bits = hn::Set(u, 0x7fffffff);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f)) {
    const auto value = hn::LoadU(f, carriers + i);
    const auto bits = hn::And(hn::BitCast(u, value), magnitude_bits);
    largest = hn::Max(largest, bits);
    zeros += hn::CountTrue(u, hn::Eq(bits, hn::Zero(u)));
    squares = hn::MulAdd(value, value, squares);
  }
  return {hn::GetLane(hn::SumOfLanes(f, squares)), hn::GetLane(hn::MaxOfLanes(u, largest)),
          static_cast<unsigned>(kGroup - zeros)};
}

void Split(uint32_t low_mask, float limit, Scale scale, const float* carriers, GroupSplit& out) {
  const F32 f;
  const U32 u;
  const I32 s;
  const size_t lanes = hn::Lanes(f);
  const auto keep = hn::Set(u, 0x7fffffffu & ~low_mask);
  const auto first = hn::Set(f, scale.first), second = hn::Set(f, scale.second);
  const auto bound = hn::Set(f, limit);
  for (size_t w = 0; w < kGroupWords; ++w) {
    uint64_t negative = 0, exception = 0, zero = 0;
    for (size_t v = 0; v < 64 / lanes; ++v) {
      const size_t at = w * 64 + v * lanes;
      const auto value = hn::LoadU(f, carriers + at);
      const auto bits = hn::BitCast(u, value);
      const auto magnitude = hn::BitCast(f, hn::And(bits, keep));
      // Not below the limit also catches NaN.
      const auto fits = hn::Lt(hn::BitCast(f, hn::And(bits, hn::Set(u, 0x7fffffffu))), bound);
      const auto units = hn::Mul(hn::Mul(hn::IfThenElseZero(fits, magnitude), first), second);
      hn::StoreU(hn::BitCast(u, hn::ConvertTo(s, units)), u, out.magnitude + at);
      const auto is_negative = hn::Ne(hn::ShiftRight<31>(bits), hn::Zero(u));
      negative |= bits_of_mask(f, hn::And(fits, hn::RebindMask(f, is_negative)), v);
      exception |= bits_of_mask(f, hn::Not(fits), v);
      zero |= bits_of_mask(u, hn::Eq(bits, hn::Zero(u)), v);
    }
    out.negative[w] = negative;
    out.exception[w] = exception;
    out.zero[w] = zero;
  }
}

void ToPlanes(const uint32_t* magnitude, unsigned planes, uint64_t* out, size_t stride) {
  const U32 u;
  const size_t lanes = hn::Lanes(u);
  for (size_t w = 0; w < kGroupWords; ++w) {
    for (unsigned i = 0; i < planes; ++i) {
      const auto bit = hn::Set(u, 1u << (planes - 1 - i));
      uint64_t word = 0;
      for (size_t v = 0; v < 64 / lanes; ++v)
        word |= bits_of_mask(u, hn::TestBit(hn::LoadU(u, magnitude + w * 64 + v * lanes), bit), v);
      out[i * stride + w] = word;
    }
  }
}

void FromPlanes(const uint64_t* planes, size_t stride, unsigned count, unsigned depth,
                uint32_t* magnitude) {
  const U32 u;
  const size_t lanes = hn::Lanes(u);
  for (size_t w = 0; w < kGroupWords; ++w) {
    for (size_t v = 0; v < 64 / lanes; ++v) {
      auto value = hn::Zero(u);
      for (unsigned i = 0; i < depth; ++i)
        value = hn::Or(value, hn::IfThenElseZero(mask_of(u, planes[i * stride + w], v),
                                                 hn::Set(u, 1u << (count - 1 - i))));
      hn::StoreU(value, u, magnitude + w * 64 + v * lanes);
    }
  }
}

// Applies `carrier_of(units as u32 vector) -> f32 vector` and the sign to a group.
template <typename CarrierOf>
HWY_INLINE void signed_carriers(Scale scale, const uint32_t* magnitude, const uint64_t* negative,
                                float* out, CarrierOf carrier_of) {
  const F32 f;
  const U32 u;
  const size_t lanes = hn::Lanes(f);
  const auto first = hn::Set(f, scale.first), second = hn::Set(f, scale.second);
  const auto sign_bit = hn::BitCast(f, hn::Set(u, 0x80000000u));
  for (size_t w = 0; w < kGroupWords; ++w) {
    for (size_t v = 0; v < 64 / lanes; ++v) {
      const size_t at = w * 64 + v * lanes;
      const auto units = carrier_of(hn::LoadU(u, magnitude + at));
      const auto value = hn::Mul(hn::Mul(units, first), second);
      const auto sign = hn::IfThenElseZero(mask_of(f, negative[w], v), sign_bit);
      hn::StoreU(hn::Xor(value, sign), f, out + at);
    }
  }
}

void Exact(Scale scale, const uint32_t* magnitude, const uint64_t* negative, float* out) {
  const F32 f;
  const I32 s;
  signed_carriers(scale, magnitude, negative, out,
                  [&](auto units) { return hn::ConvertTo(f, hn::BitCast(s, units)); });
}

void Approximate(Scale scale, unsigned cell_bits, uint32_t exact_from, const float* centroid,
                 const uint32_t* magnitude, const uint64_t* negative, float* out) {
  const F32 f;
  const U32 u;
  const I32 s;
  const float cell = static_cast<float>(1u << cell_bits);
  const auto keep = hn::Set(u, ~((1u << cell_bits) - 1));
  const auto exact = hn::Set(s, static_cast<int32_t>(exact_from));
  const auto size = hn::Set(f, cell);
  const auto last = hn::Set(s, kCentroids);  // the entry of all other cells
  signed_carriers(scale, magnitude, negative, out, [&](auto units) {
    const auto known = hn::BitCast(s, hn::And(units, keep));
    const auto index = hn::Min(
        hn::BitCast(s, hn::ShiftRightSame(hn::BitCast(u, known), static_cast<int>(cell_bits))),
        last);
    const auto within = hn::Mul(hn::GatherIndex(f, centroid, index), size);
    const auto inside = hn::RebindMask(f, hn::Lt(known, exact));
    return hn::Add(hn::ConvertTo(f, known), hn::IfThenElseZero(inside, within));
  });
}

void Errors(const float* carriers, const float* approximation, size_t count, ErrorSum& sum) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> f;
  const size_t lanes = hn::Lanes(d);
  auto squared_error = hn::Zero(d), squared_value = hn::Zero(d), largest = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto source = hn::LoadU(f, carriers + i);
    const auto finite = hn::IsFinite(source);
    const auto value = hn::PromoteTo(d, hn::IfThenElseZero(finite, source));
    const auto given =
        hn::PromoteTo(d, hn::IfThenElseZero(finite, hn::LoadU(f, approximation + i)));
    const auto error = hn::Sub(value, given);
    squared_value = hn::MulAdd(value, value, squared_value);
    squared_error = hn::MulAdd(error, error, squared_error);
    largest = hn::Max(largest, hn::Abs(error));
  }
  sum.squared_error += hn::GetLane(hn::SumOfLanes(d, squared_error));
  sum.squared_value += hn::GetLane(hn::SumOfLanes(d, squared_value));
  sum.max_error = std::max(sum.max_error, hn::GetLane(hn::MaxOfLanes(d, largest)));
  sum.add({carriers + i, count - i}, {approximation + i, count - i});
}

// To nearest even; carriers are never NaN here.
void StoreBf16(const float* carriers, std::byte* to) {
  const U32 u;
  const hn::Rebind<uint16_t, U32> half;
  auto* out = reinterpret_cast<uint16_t*>(to);
  const auto* in = reinterpret_cast<const uint32_t*>(carriers);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(u)) {
    const auto bits = hn::LoadU(u, in + i);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(u, 0x7fff)), odd);
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(I32(), hn::ShiftRight<16>(rounded))), half, out + i);
  }
}

void StoreF16(const float* carriers, std::byte* to) {
  const F32 f;
  const hn::Rebind<hwy::float16_t, F32> half;
  auto* out = reinterpret_cast<hwy::float16_t*>(to);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f))
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(f, carriers + i)), half, out + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::holotensor::refine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::holotensor::refine {
HWY_EXPORT(LoadBf16);
HWY_EXPORT(LoadF16);
HWY_EXPORT(Statistics);
HWY_EXPORT(Split);
HWY_EXPORT(ToPlanes);
HWY_EXPORT(FromPlanes);
HWY_EXPORT(Exact);
HWY_EXPORT(Approximate);
HWY_EXPORT(Errors);
HWY_EXPORT(StoreBf16);
HWY_EXPORT(StoreF16);

namespace {

// Every fp8 value as f32, and back by the top 12 bits of the f32: sign, exponent and three bits of
// the significand, which tell all fp8 values apart.
struct SmallFloatTable {
  std::array<float, 256> value;
  std::array<uint8_t, 4096> code;
  explicit SmallFloatTable(DType type) : code{} {
    for (unsigned i = 0; i < 256; ++i) {
      value[i] = small_float_to_f32(type, static_cast<uint8_t>(i));
      if (std::isfinite(value[i]))
        code[std::bit_cast<uint32_t>(value[i]) >> 20] = static_cast<uint8_t>(i);
    }
  }
};

const SmallFloatTable& small_float_table(DType type) {
  static const SmallFloatTable tables[] = {
      SmallFloatTable(DType::f8e4m3fn), SmallFloatTable(DType::f8e4m3fnuz),
      SmallFloatTable(DType::f8e5m2), SmallFloatTable(DType::f8e5m2fnuz)};
  return tables[static_cast<unsigned>(type) - static_cast<unsigned>(DType::f8e4m3fn)];
}

bool is_fp8(DType type) { return type >= DType::f8e4m3fn && type <= DType::f8e5m2fnuz; }

}  // namespace

Scale::Scale(int exponent) {
  const int half = exponent / 2;
  first = std::ldexp(1.0f, half);
  second = std::ldexp(1.0f, exponent - half);
}

void load_carriers(const NumberFormat& format, const std::byte* from, size_t count, float* out) {
  if (count < kGroup) std::fill(out, out + kGroup, 0.0f);
  switch (format.dtype) {
    case DType::f32:
      std::memcpy(out, from, count * 4);
      return;
    case DType::bf16:
      if (count == kGroup) return HWY_DYNAMIC_DISPATCH(LoadBf16)(from, out);
      break;
    case DType::f16:
      if (count == kGroup) return HWY_DYNAMIC_DISPATCH(LoadF16)(from, out);
      break;
    case DType::i8:
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(from[i]) + 0.5f;
      return;
    case DType::u8:
      for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(from[i]) - 127.5f;
      return;
    default: {
      const SmallFloatTable& table = small_float_table(format.dtype);
      for (size_t i = 0; i < count; ++i) out[i] = table.value[static_cast<uint8_t>(from[i])];
      return;
    }
  }
  std::byte padded[kGroup * 2] = {};
  std::memcpy(padded, from, count * 2);
  load_carriers(format, padded, kGroup, out);
}

GroupStatistics group_statistics(const float* carriers) {
  return HWY_DYNAMIC_DISPATCH(Statistics)(carriers);
}

void split_group(const NumberFormat& format, const Window& window, const float* carriers,
                 GroupSplit& out) {
  const float limit = window.top >= 127 ? HUGE_VALF : std::ldexp(1.0f, window.top + 1);
  HWY_DYNAMIC_DISPATCH(Split)
  ((1u << format.low_bits) - 1, limit, Scale(-window.unit()), carriers, out);
}

void planes_of_group(const uint32_t* magnitude, unsigned planes, uint64_t* out, size_t stride) {
  HWY_DYNAMIC_DISPATCH(ToPlanes)(magnitude, planes, out, stride);
}

void group_of_planes(const uint64_t* planes, size_t stride, unsigned count, unsigned depth,
                     uint32_t* magnitude) {
  HWY_DYNAMIC_DISPATCH(FromPlanes)(planes, stride, count, depth, magnitude);
}

void exact_carriers(const Window& window, const uint32_t* magnitude, const uint64_t* negative,
                    float* out) {
  HWY_DYNAMIC_DISPATCH(Exact)(Scale(window.unit()), magnitude, negative, out);
}

void approximate_carriers(const NumberFormat& format, const Window& window, unsigned depth,
                          const float* centroid, const uint32_t* magnitude,
                          const uint64_t* negative, float* out) {
  const unsigned cell_bits = window.planes - depth;
  // A leading one at plane t is known to its last bit after t + significant planes.
  const uint32_t exact_from = !format.integer && depth >= format.significant
                                  ? 1u << (window.planes - 1 - (depth - format.significant))
                                  : 1u << 30;
  HWY_DYNAMIC_DISPATCH(Approximate)
  (Scale(window.unit()), cell_bits, exact_from, centroid, magnitude, negative, out);
}

void add_errors(const float* carriers, const float* approximation, size_t count, ErrorSum& sum) {
  HWY_DYNAMIC_DISPATCH(Errors)(carriers, approximation, count, sum);
}

void store_carriers(const NumberFormat& format, const float* carriers, bool exact, DType type,
                    size_t count, std::byte* to) {
  if (format.integer) {
    float values[kGroup];
    for (size_t i = 0; i < count; ++i) values[i] = carriers[i] - format.offset;
    (void)from_f32({values, count}, type, {to, bytes_for(type, count)});
  } else if (exact && is_fp8(type)) {
    const SmallFloatTable& table = small_float_table(type);
    for (size_t i = 0; i < count; ++i)
      to[i] = static_cast<std::byte>(table.code[std::bit_cast<uint32_t>(carriers[i]) >> 20]);
  } else if (count == kGroup && type == DType::bf16) {
    HWY_DYNAMIC_DISPATCH(StoreBf16)(carriers, to);
  } else if (count == kGroup && type == DType::f16) {
    HWY_DYNAMIC_DISPATCH(StoreF16)(carriers, to);
  } else {
    (void)from_f32({carriers, count}, type, {to, bytes_for(type, count)});
  }
}

}  // namespace hologram::holotensor::refine
#endif
