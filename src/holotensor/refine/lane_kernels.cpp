#include "holotensor/refine/lane_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include "holotensor/refine/small_float.h"

#ifndef HOLOGRAM_REFINE_CELLS
#define HOLOGRAM_REFINE_CELLS
namespace hologram::holotensor::refine {
// How magnitudes known to some depth are read: lane_kernels.h, approximate_carriers().
struct Cells {
  unsigned bits;        // a cell has 2^bits units
  uint32_t exact_from;  // magnitudes from here on are known to their last plane
  float open_ulp, exact_ulp;
  const float* centroid;
};
}  // namespace hologram::holotensor::refine
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "holotensor/refine/lane_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "holotensor/refine/plane_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hologram::holotensor::refine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a word of 64 elements is a whole number of vectors.
using F32 = hn::CappedTag<float, 16>;
using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;

void LoadBf16(const std::byte* from, float* out) {
  const F32 f;
  const U32 u;
  const hn::Rebind<uint16_t, F32> half;
  const auto* in = reinterpret_cast<const uint16_t*>(from);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f))
    hn::StoreU(hn::BitCast(f, hn::ShiftLeft<16>(hn::PromoteTo(u, hn::LoadU(half, in + i)))), f,
               out + i);
}

// Highway converts f16 in every corner (infinities, NaN, to nearest even) only where the CPU does.
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
void LoadF16(const std::byte* from, float* out) {
  (void)to_f32(DType::f16, {from, kGroup * 2}, {out, kGroup});
}
void StoreF16(const float* carriers, std::byte* to) {
  (void)from_f32({carriers, kGroup}, DType::f16, {to, kGroup * 2});
}
#else
void LoadF16(const std::byte* from, float* out) {
  const F32 f;
  const hn::Rebind<hwy::float16_t, F32> half;
  const auto* in = reinterpret_cast<const hwy::float16_t*>(from);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f))
    hn::StoreU(hn::PromoteTo(f, hn::LoadU(half, in + i)), f, out + i);
}
void StoreF16(const float* carriers, std::byte* to) {
  const F32 f;
  const hn::Rebind<hwy::float16_t, F32> half;
  auto* out = reinterpret_cast<hwy::float16_t*>(to);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f))
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(f, carriers + i)), half, out + i);
}
#endif

// Carriers of integers: `offset` past them.
template <typename T>
HWY_INLINE void load_bytes(const std::byte* from, float offset, float* out) {
  const F32 f;
  const I32 s;
  const hn::Rebind<T, F32> narrow;
  const auto* in = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f)) {
    const auto whole = hn::ConvertTo(f, hn::PromoteTo(s, hn::LoadU(narrow, in + i)));
    hn::StoreU(hn::Add(whole, hn::Set(f, offset)), f, out + i);
  }
}
void LoadI8(const std::byte* from, float* out) { load_bytes<int8_t>(from, 0.5f, out); }
void LoadU8(const std::byte* from, float* out) { load_bytes<uint8_t>(from, -127.5f, out); }

// Numbers only: what is infinite or no number becomes NaN.
void LoadFp8(const SmallFloat& format, const std::byte* from, float* out) {
  const F32 f;
  const U32 u;
  const I32 s;
  const hn::Rebind<uint8_t, F32> narrow;
  const auto* in = reinterpret_cast<const uint8_t*>(from);
  const auto rebias = hn::Set(u, format.rebias());
  const auto unit = hn::Set(f, Scale::power(format.unit()));
  const auto first_normal = hn::Set(s, 1 << format.mantissa);
  const auto last_number = hn::Set(s, static_cast<int32_t>(format.first_special) - 1);
  const auto special_code = hn::Set(s, static_cast<int32_t>(format.special_code));
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f)) {
    const auto code = hn::PromoteTo(s, hn::LoadU(narrow, in + i));
    const auto magnitude = hn::And(code, hn::Set(s, 0x7f));
    const auto sign = hn::ShiftLeft<24>(hn::BitCast(u, hn::AndNot(hn::Set(s, 0x7f), code)));
    const auto normal = hn::BitCast(
        f, hn::Add(hn::ShiftLeftSame(hn::BitCast(u, magnitude), format.shift()), rebias));
    const auto small = hn::Mul(hn::ConvertTo(f, magnitude), unit);
    const auto is_small = hn::RebindMask(f, hn::Lt(magnitude, first_normal));
    const auto value = hn::Or(hn::IfThenElse(is_small, small, normal), hn::BitCast(f, sign));
    const auto special = hn::Or(hn::Gt(magnitude, last_number), hn::Eq(code, special_code));
    hn::StoreU(hn::IfThenElse(hn::RebindMask(f, special), hn::NaN(f), value), f, out + i);
  }
}

// Sixteen sums in f64, of the squares of the elements i mod 16: the same bits on every level. The
// square of an f32 is exact in f64; nothing else is fused, which not every level could do.
HWY_INLINE double sum_of_sixteen(double* sums) {
  for (size_t width = 8; width > 0; width /= 2)
    for (size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
  return sums[0];
}

void Squares(const float* values, GroupError& out) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> f;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN double sums[16];
  auto most = hn::Zero(f);
  for (size_t column = 0; column < 16; column += lanes) {
    auto even = hn::Zero(d), odd = hn::Zero(d);
    for (size_t i = column; i < kGroup; i += 32) {
      const auto f0 = hn::LoadU(f, values + i), f1 = hn::LoadU(f, values + i + 16);
      const auto d0 = hn::PromoteTo(d, f0), d1 = hn::PromoteTo(d, f1);
      most = hn::Max(most, hn::Max(hn::Abs(f0), hn::Abs(f1)));
      even = hn::Add(even, hn::Mul(d0, d0));
      odd = hn::Add(odd, hn::Mul(d1, d1));
    }
    hn::StoreU(hn::Add(even, odd), d, sums + column);
  }
  out = {sum_of_sixteen(sums), hn::GetLane(hn::MaxOfLanes(f, most))};
}

// Each element as often as `counts` says.
HWY_INLINE void weighted_sum_squares(const float* values, const uint32_t* counts, GroupError& out) {
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<float, decltype(d)> f;
  const hn::Rebind<int32_t, decltype(d)> s;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN double sums[16];
  auto most = hn::Zero(f);
  for (size_t column = 0; column < 16; column += lanes) {
    auto sum = hn::Zero(d);
    for (size_t i = column; i < kGroup; i += 16) {
      const auto count = hn::LoadU(s, reinterpret_cast<const int32_t*>(counts) + i);
      const auto there = hn::RebindMask(f, hn::Gt(count, hn::Zero(s)));
      const auto value = hn::IfThenElseZero(there, hn::LoadU(f, values + i));
      const auto wide = hn::PromoteTo(d, value);
      most = hn::Max(most, hn::Abs(value));
      sum = hn::Add(sum, hn::Mul(hn::Mul(wide, wide), hn::PromoteTo(d, count)));
    }
    hn::StoreU(sum, d, sums + column);
  }
  out = {sum_of_sixteen(sums), hn::GetLane(hn::MaxOfLanes(f, most))};
}

GroupStatistics Statistics(const float* carriers) {
  const F32 f;
  const U32 u;
  GroupError error;
  Squares(carriers, error);
  auto largest = hn::Zero(u);
  size_t zeros = 0;
  const auto magnitude_bits = hn::Set(u, 0x7fffffff);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f)) {
    const auto value = hn::LoadU(f, carriers + i);
    const auto bits = hn::And(hn::BitCast(u, value), magnitude_bits);
    largest = hn::Max(largest, bits);
    zeros += hn::CountTrue(u, hn::Eq(bits, hn::Zero(u)));
  }
  return {error.squares, hn::GetLane(hn::MaxOfLanes(u, largest)),
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
      const auto whole = hn::BitCast(f, hn::And(bits, hn::Set(u, 0x7fffffffu)));
      const auto fits = hn::Lt(whole, bound);
      const auto truth = hn::Mul(hn::Mul(whole, first), second);
      hn::StoreU(hn::IfThenElse(fits, truth, hn::NaN(f)), f, out.units + at);
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
  const I32 s;
  const hn::Rebind<uint16_t, I32> half;
  uint16_t narrow[64];
  for (size_t w = 0; w < kGroupWords; ++w) {
    const uint32_t* values = magnitude + w * 64;
    if (planes > 16) {
      planes_of_word<uint32_t>(values, planes, out + w, stride);
      continue;
    }
    for (size_t i = 0; i < 64; i += hn::Lanes(s))
      hn::StoreU(hn::DemoteTo(half, hn::LoadU(s, reinterpret_cast<const int32_t*>(values) + i)),
                 half, narrow + i);
    planes_of_word<uint16_t>(narrow, planes, out + w, stride);
  }
}

void FromPlanes(const uint64_t* planes, size_t stride, unsigned count, unsigned depth,
                uint32_t* magnitude) {
  if (count > 16) return integers_of_planes<uint32_t>(planes, stride, count, depth, magnitude);
  const U32 u;
  const hn::Rebind<uint16_t, U32> half;
  uint16_t narrow[kGroup];
  integers_of_planes<uint16_t>(planes, stride, count, depth, narrow);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(u))
    hn::StoreU(hn::PromoteTo(u, hn::LoadU(half, narrow + i)), u, magnitude + i);
}

// Applies `units_of(magnitudes) -> f32 vector`, the scale and the sign to a group.
template <typename UnitsOf>
HWY_INLINE void signed_carriers(Scale scale, const uint32_t* magnitude, const uint64_t* negative,
                                float* out, UnitsOf units_of) {
  const F32 f;
  const U32 u;
  const size_t lanes = hn::Lanes(f);
  const auto first = hn::Set(f, scale.first), second = hn::Set(f, scale.second);
  const auto sign_bit = hn::BitCast(f, hn::Set(u, 0x80000000u));
  for (size_t w = 0; w < kGroupWords; ++w) {
    for (size_t v = 0; v < 64 / lanes; ++v) {
      const size_t at = w * 64 + v * lanes;
      const auto value = hn::Mul(hn::Mul(units_of(hn::LoadU(u, magnitude + at)), first), second);
      const auto sign = hn::IfThenElseZero(mask_of(f, negative + w, v), sign_bit);
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

// Calls `use` with a functor from magnitudes to the units that stand for their cells.
template <typename Use>
HWY_INLINE void with_cells(const Cells& cells, Use use) {
  const F32 f;
  const U32 u;
  const I32 s;
  const auto keep = hn::Set(u, ~((1u << cells.bits) - 1));
  const auto exact = hn::Set(s, static_cast<int32_t>(cells.exact_from));
  const auto size = hn::Set(f, static_cast<float>(1u << cells.bits));
  const auto middle = hn::Mul(size, hn::Set(f, 0.5f));
  const auto last = hn::Set(s, kCentroids);  // the entry of all other cells
  const auto exponent = hn::Set(u, 0x7f800000u);
  const auto open_ulp = hn::Set(f, cells.open_ulp), exact_ulp = hn::Set(f, cells.exact_ulp);
  const auto finish = [&](auto known, auto within) {
    const auto value = hn::ConvertTo(f, known);
    // The value of the leading one; 0 when there is none yet.
    const auto leading = hn::BitCast(f, hn::And(hn::BitCast(u, value), exponent));
    const auto open = hn::RebindMask(f, hn::Lt(known, exact));
    return hn::Add(value, hn::IfThenElse(open, hn::MulAdd(leading, open_ulp, within),
                                         hn::Mul(leading, exact_ulp)));
  };
  if (!cells.centroid)
    return use(
        [&](auto magnitude) { return finish(hn::BitCast(s, hn::And(magnitude, keep)), middle); });
  const auto cell_of = [&](auto known) {
    return hn::Min(hn::BitCast(s, hn::ShiftRightSame(known, static_cast<int>(cells.bits))), last);
  };
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(F32()) >= kCentroids) {
    // The table fits a register; a gather would be several times slower.
    const auto table = hn::LoadU(f, cells.centroid);
    return use([&](auto magnitude) {
      const auto known = hn::And(magnitude, keep);
      const auto cell = cell_of(known);
      const auto entry = hn::And(cell, hn::Set(s, kCentroids - 1));
      const auto looked_up = hn::TableLookupLanes(table, hn::IndicesFromVec(f, entry));
      const auto others = hn::RebindMask(f, hn::Eq(cell, last));
      return finish(hn::BitCast(s, known),
                    hn::IfThenElse(others, middle, hn::Mul(looked_up, size)));
    });
  }
#endif
  use([&](auto magnitude) {
    const auto known = hn::And(magnitude, keep);
    const auto fraction = hn::GatherIndex(f, cells.centroid, cell_of(known));
    return finish(hn::BitCast(s, known), hn::Mul(fraction, size));
  });
}

void Approximate(const Cells& cells, Scale scale, const uint32_t* magnitude,
                 const uint64_t* negative, float* out) {
  with_cells(cells,
             [&](auto units_of) { signed_carriers(scale, magnitude, negative, out, units_of); });
}

// What cells leave of a group; NaN, which is not measured, becomes 0.
HWY_INLINE void cell_errors(const Cells& cells, const GroupSplit& split, float* errors) {
  with_cells(cells, [&](auto units_of) {
    const F32 f;
    const U32 u;
    for (size_t i = 0; i < kGroup; i += hn::Lanes(f)) {
      const auto error =
          hn::Sub(hn::LoadU(f, split.units + i), units_of(hn::LoadU(u, split.magnitude + i)));
      hn::StoreU(hn::IfThenElseZero(hn::Eq(error, error), error), f, errors + i);
    }
  });
}

void CellErrors(const Cells& cells, const GroupSplit& split, GroupError& out) {
  float errors[kGroup];
  cell_errors(cells, split, errors);
  Squares(errors, out);
}

void WeightedSquares(const float* values, const uint32_t* counts, GroupError& out) {
  weighted_sum_squares(values, counts, out);
}

void WeightedCellErrors(const Cells& cells, const GroupSplit& split, const uint32_t* counts,
                        GroupError& out) {
  float errors[kGroup];
  cell_errors(cells, split, errors);
  weighted_sum_squares(errors, counts, out);
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

// Carriers of whole numbers, to the nearest and saturated.
template <typename T>
HWY_INLINE void store_bytes(const float* carriers, float offset, std::byte* to) {
  const F32 f;
  const hn::Rebind<T, F32> narrow;
  auto* out = reinterpret_cast<T*>(to);
  for (size_t i = 0; i < kGroup; i += hn::Lanes(f)) {
    const auto value = hn::Sub(hn::LoadU(f, carriers + i), hn::Set(f, offset));
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(value)), narrow, out + i);
  }
}
void StoreI8(const float* carriers, std::byte* to) { store_bytes<int8_t>(carriers, 0.5f, to); }
void StoreU8(const float* carriers, std::byte* to) { store_bytes<uint8_t>(carriers, -127.5f, to); }

}  // namespace HWY_NAMESPACE
}  // namespace hologram::holotensor::refine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::holotensor::refine {
HWY_EXPORT(LoadBf16);
HWY_EXPORT(LoadF16);
HWY_EXPORT(LoadI8);
HWY_EXPORT(LoadU8);
HWY_EXPORT(LoadFp8);
HWY_EXPORT(Statistics);
HWY_EXPORT(Split);
HWY_EXPORT(ToPlanes);
HWY_EXPORT(FromPlanes);
HWY_EXPORT(Exact);
HWY_EXPORT(Approximate);
HWY_EXPORT(CellErrors);
HWY_EXPORT(Squares);
HWY_EXPORT(WeightedCellErrors);
HWY_EXPORT(WeightedSquares);
HWY_EXPORT(StoreBf16);
HWY_EXPORT(StoreF16);
HWY_EXPORT(StoreI8);
HWY_EXPORT(StoreU8);

void load_carriers(const NumberFormat& format, const std::byte* from, size_t count, float* out) {
  switch (format.dtype) {
    case DType::f32:
      std::memcpy(out, from, count * 4);
      std::fill(out + count, out + kGroup, 0.0f);
      return;
    case DType::bf16:
      if (count == kGroup) return HWY_DYNAMIC_DISPATCH(LoadBf16)(from, out);
      break;
    case DType::f16:
      if (count == kGroup) return HWY_DYNAMIC_DISPATCH(LoadF16)(from, out);
      break;
    case DType::i8:
      if (count == kGroup) return HWY_DYNAMIC_DISPATCH(LoadI8)(from, out);
      break;
    case DType::u8:
      if (count == kGroup) return HWY_DYNAMIC_DISPATCH(LoadU8)(from, out);
      break;
    default:
      if (count == kGroup)
        return HWY_DYNAMIC_DISPATCH(LoadFp8)(small_float_of(format.dtype), from, out);
      break;
  }
  std::byte padded[kGroup * 4] = {};
  std::memcpy(padded, from, count * format.bytes);
  load_carriers(format, padded, kGroup, out);
  std::fill(out + count, out + kGroup, 0.0f);  // an integer's zero is no zero carrier
}

GroupStatistics group_statistics(const float* carriers) {
  return HWY_DYNAMIC_DISPATCH(Statistics)(carriers);
}

void split_group(const NumberFormat& format, const Window& window, const float* carriers,
                 GroupSplit& out) {
  const float limit =
      window.top >= 127 ? HUGE_VALF : static_cast<float>(power_of_two(window.top + 1));
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

namespace {

Cells cells_of(const NumberFormat& format, const Window& window, unsigned depth,
               const float* centroid) {
  Cells cells{.bits = window.planes - depth, .exact_from = 1u << 30, .centroid = centroid};
  // A leading one at plane t is known to its last bit after t + significant planes.
  if (!format.integer && depth >= format.significant)
    cells.exact_from = 1u << (window.planes - 1 - (depth - format.significant));
  // Elements are multiples of their last place u: those of a cell of size s lie at 0, u, ..., s -
  // u, and their middle is (s - u) / 2. Where low bits follow the planes there is no such grid, and
  // an element known to its last plane is still open by u.
  const float half_ulp =
      format.integer ? 0.0f : Scale::power(-static_cast<int>(format.significant));
  cells.open_ulp = format.low_bits > 0 ? 0.0f : -half_ulp;
  cells.exact_ulp = format.low_bits > 0 ? half_ulp : 0.0f;
  return cells;
}

}  // namespace

void approximate_carriers(const NumberFormat& format, const Window& window, unsigned depth,
                          const float* centroid, const uint32_t* magnitude,
                          const uint64_t* negative, float* out) {
  HWY_DYNAMIC_DISPATCH(Approximate)
  (cells_of(format, window, depth, centroid), Scale(window.unit()), magnitude, negative, out);
}

GroupError approximation_error(const NumberFormat& format, const Window& window, unsigned depth,
                               const float* centroid, const GroupSplit& split) {
  GroupError error;
  HWY_DYNAMIC_DISPATCH(CellErrors)(cells_of(format, window, depth, centroid), split, error);
  const double unit = power_of_two(window.unit());
  return {error.squares * unit * unit, error.largest * unit};
}

GroupError group_squares(const float* values) {
  GroupError error;
  HWY_DYNAMIC_DISPATCH(Squares)(values, error);
  return error;
}

GroupError weighted_error(const NumberFormat& format, const Window& window, unsigned depth,
                          const float* centroid, const GroupSplit& split, const uint32_t* counts) {
  GroupError error;
  HWY_DYNAMIC_DISPATCH(WeightedCellErrors)
  (cells_of(format, window, depth, centroid), split, counts, error);
  const double unit = power_of_two(window.unit());
  return {error.squares * unit * unit, error.largest * unit};
}

GroupError weighted_squares(const float* values, const uint32_t* counts) {
  GroupError error;
  HWY_DYNAMIC_DISPATCH(WeightedSquares)(values, counts, error);
  return error;
}

void store_carriers(const NumberFormat& format, const float* carriers, DType type, size_t count,
                    std::byte* to) {
  if (count == kGroup && format.integer && type == DType::i8) {
    HWY_DYNAMIC_DISPATCH(StoreI8)(carriers, to);
  } else if (count == kGroup && format.integer && type == DType::u8) {
    HWY_DYNAMIC_DISPATCH(StoreU8)(carriers, to);
  } else if (format.integer) {
    float values[kGroup];
    const size_t most = std::min<size_t>(count, kGroup);  // a group is all there ever is
    for (size_t i = 0; i < most; ++i) values[i] = carriers[i] - format.offset;
    (void)from_f32({values, most}, type, {to, bytes_for(type, most)});
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
