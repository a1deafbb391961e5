#include "backends/cpu/dense/unit_tile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/unit_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/tile.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::ScalableTag<int16_t>;
constexpr size_t kLanes = hn::MaxLanes(DF());
constexpr size_t kTileRows = HWY_MAX_BYTES == 64 ? kMaxTileRows : 6;

// Bytes of a unit as four 16-bit values.
HWY_INLINE uint64_t spread(uint32_t unit) {
  uint64_t v = unit;
  v = (v | v << 16) & 0x0000ffff0000ffffull;
  return (v | v << 8) & 0x00ff00ff00ff00ffull;
}

// Bytes of the left side as 16-bit values, made once for all columns of a tile: some units at a
// time, which stay in the first cache.
constexpr size_t kSpreadUnits = 8 * kChunk;
struct Spread {
  size_t first, count;  // units
  HWY_ALIGN uint64_t rows[kTileRows][kSpreadUnits];
};

void spread_units(const UnitTile& tile, Spread& to) {
  const hn::ScalableTag<uint16_t> d16;
  const hn::Rebind<uint8_t, decltype(d16)> d8;
  for (size_t r = 0; r < tile.rows; ++r)
    for (size_t u = 0; u < to.count; u += kChunk) {
      const size_t from = (to.first + u) / kChunk * tile.rows + r, past = to.count - u;
      const auto* bytes = reinterpret_cast<const uint8_t*>(tile.a + from * kChunk);
      auto* values = reinterpret_cast<uint16_t*>(to.rows[r] + u);
      if (past >= kChunk) {
        for (size_t i = 0; i < 4 * kChunk; i += hn::Lanes(d16))
          hn::StoreU(hn::PromoteTo(d16, hn::LoadU(d8, bytes + i)), d16, values + i);
      } else {
        std::copy_n(bytes, 4 * past, values);
      }
    }
}

// A row after the other: GCC would rather begin with what all rows load, and has no registers left
// for the sums then.
template <class V>
HWY_INLINE void in_turn([[maybe_unused]] V& value) {
#if HWY_ARCH_X86
  asm volatile("" : "+v"(value.raw));
#endif
}

// kLanes columns from `column` on. Products of 16-bit pairs: exact, since nothing saturates.
template <size_t kRows>
void int8_strip(const UnitTile& tile, const Spread& spread, size_t column) {
  const D32 d32;
  const D16 d16;
  const hn::Rebind<int8_t, D16> d8;  // as many lanes as D16
  const hn::RepartitionToWide<hn::RepartitionToWide<D16>> d64;
  using V = hn::Vec<D32>;
  V low[kRows], high[kRows];  // two sums a column each: of the first and the last two of four
  V low1[kRows], high1[kRows];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) low[r] = high[r] = low1[r] = high1[r] = hn::Zero(d32);
  const auto* b = reinterpret_cast<const int8_t*>(tile.b + spread.first * tile.width + column);
  for (size_t u = 0; u < spread.count; ++u) {
    const auto b_low = hn::PromoteTo(d16, hn::LoadU(d8, b));
    const auto b_high = hn::PromoteTo(d16, hn::LoadU(d8, b + 2 * kLanes));
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      auto as =
          hn::BitCast(d16, hn::Set(d64, static_cast<hn::TFromD<decltype(d64)>>(spread.rows[r][u])));
      in_turn(as);
      low[r] = hn::ReorderWidenMulAccumulate(d32, as, b_low, low[r], low1[r]);
      high[r] = hn::ReorderWidenMulAccumulate(d32, as, b_high, high[r], high1[r]);
      in_turn(low[r]);
      in_turn(high[r]);
    }
    b += tile.width * sizeof(uint32_t);
  }
  auto* sums = static_cast<int32_t*>(tile.sums) + column;
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
    const V l = hn::RearrangeToOddPlusEven(low[r], low1[r]);
    const V h = hn::RearrangeToOddPlusEven(high[r], high1[r]);
    V sum = hn::Add(hn::ConcatEven(d32, h, l), hn::ConcatOdd(d32, h, l));
    int32_t* to = sums + r * tile.width;
    if (spread.first != 0) sum = hn::Add(sum, hn::LoadU(d32, to));
    hn::StoreU(sum, d32, to);
  }
}

// A bf16 is the upper half of an f32.
template <size_t kRows>
void bf16_strip(const UnitTile& tile, size_t column) {
  const DF d;
  const hn::ScalableTag<uint32_t> du;
  using V = hn::Vec<DF>;
  V sums[kRows];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  const uint32_t* a = tile.a;
  const uint32_t* b = tile.b + column;
  for (size_t u = 0; u < tile.units; ++u) {
    if (u % kChunk == 0) a = tile.chunk(u / kChunk);
    const auto bs = hn::LoadU(du, b);
    const V first = hn::BitCast(d, hn::ShiftLeft<16>(bs));
    const V second = hn::BitCast(d, hn::And(bs, hn::Set(du, 0xffff0000u)));
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const uint32_t unit = a[r * kChunk];
      sums[r] = hn::MulAdd(hn::Set(d, std::bit_cast<float>(unit << 16)), first, sums[r]);
      sums[r] = hn::MulAdd(hn::Set(d, std::bit_cast<float>(unit & 0xffff0000u)), second, sums[r]);
    }
    b += tile.width;
    ++a;
  }
  auto* out = static_cast<float*>(tile.sums) + column;
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, out + r * tile.width);
}

// Both parts of a value are added up before they are multiplied: a CPU without tiles has f32
// products at no extra cost.
template <size_t kRows>
void split_strip(const UnitTile& tile, size_t column) {
  const DF d;
  const hn::ScalableTag<uint32_t> du;
  using V = hn::Vec<DF>;
  const auto upper = hn::Set(du, 0xffff0000u);
  V sums[kRows];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  const auto number = [](uint32_t bits) { return std::bit_cast<float>(bits); };
  const ptrdiff_t lower_a = tile.low();
  const size_t lower_b = tile.width * kChunk;
  for (size_t pair = 0; pair < tile.units / (2 * kChunk); ++pair) {
    const uint32_t* a = tile.pair(pair);
    const uint32_t* b = tile.b + pair * 2 * kChunk * tile.width + column;
    for (size_t u = 0; u < kChunk; ++u, ++a, b += tile.width) {
      const auto high = hn::LoadU(du, b), low = hn::LoadU(du, b + lower_b);
      const V first =
          hn::Add(hn::BitCast(d, hn::ShiftLeft<16>(high)), hn::BitCast(d, hn::ShiftLeft<16>(low)));
      const V second =
          hn::Add(hn::BitCast(d, hn::And(high, upper)), hn::BitCast(d, hn::And(low, upper)));
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const uint32_t h = a[r * kChunk], l = a[static_cast<ptrdiff_t>(r * kChunk) + lower_a];
        const float x = number(h << 16) + number(l << 16);
        const float y = number(h & 0xffff0000u) + number(l & 0xffff0000u);
        sums[r] = hn::MulAdd(hn::Set(d, x), first, sums[r]);
        sums[r] = hn::MulAdd(hn::Set(d, y), second, sums[r]);
      }
    }
  }
  auto* out = static_cast<float*>(tile.sums) + column;
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, out + r * tile.width);
}

// Of kLanes columns from `column` on, one row. A CPU without tiles does not compile for this: it
// only has to run what another compiled.
void digits_strip(const UnitTile& tile, size_t row, size_t column) {
  const D32 d32;
  const D16 d16;
  const hn::Rebind<int8_t, D16> d8;
  const hn::RepartitionToWide<hn::RepartitionToWide<D16>> d64;
  using V = hn::Vec<D32>;
  struct Sums {  // two a column each: of the first and the last two of four
    V low, high, low1, high1;
  };
  Sums upper, cross;
  upper.low = upper.high = upper.low1 = upper.high1 = hn::Zero(d32);
  cross = upper;
  const auto add = [&](Sums& s, auto a, auto b_low, auto b_high) {
    s.low = hn::ReorderWidenMulAccumulate(d32, a, b_low, s.low, s.low1);
    s.high = hn::ReorderWidenMulAccumulate(d32, a, b_high, s.high, s.high1);
  };
  const auto spread_signed = [&](uint32_t unit) {
    // A byte at the upper end of its 16 bits, then down with its sign.
    return hn::ShiftRight<8>(
        hn::BitCast(d16, hn::Set(d64, static_cast<hn::TFromD<decltype(d64)>>(spread(unit) << 8))));
  };
  const size_t part = tile.width * kChunk;
  for (size_t pair = 0; pair < tile.units / (2 * kChunk); ++pair) {
    const uint32_t* a = tile.pair(pair) + row * tile.a_row;
    const uint32_t* b = tile.b + pair * 2 * part + column;
    for (size_t u = 0; u < kChunk; ++u, ++a, b += tile.width) {
      const auto load = [&](const uint32_t* from, size_t lane) {
        return hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const int8_t*>(from) + lane));
      };
      const auto high = spread_signed(a[0]), low = spread_signed(a[tile.low()]);
      const auto b0 = load(b, 0), b1 = load(b, 2 * kLanes);
      add(upper, high, b0, b1);
      add(cross, low, b0, b1);
      add(cross, high, load(b + part, 0), load(b + part, 2 * kLanes));
    }
  }
  int32_t* sums = static_cast<int32_t*>(tile.sums) + row * tile.width + column;
  const auto put = [&](const Sums& s, int32_t* to) {
    const V l = hn::RearrangeToOddPlusEven(s.low, s.low1);
    const V h = hn::RearrangeToOddPlusEven(s.high, s.high1);
    hn::StoreU(hn::Add(hn::ConcatEven(d32, h, l), hn::ConcatOdd(d32, h, l)), d32, to);
  };
  put(upper, sums);
  put(cross, sums + kDigitSums);
}

// 16-bit integers: kLanes columns from `column` on, one row. For CPUs without dot products of them,
// which likewise only run what another compiled.
void shorts_strip(const UnitTile& tile, size_t row, size_t column) {
  const D32 d32;
  const D16 d16;
  const hn::ScalableTag<uint32_t> du;
  const DF d;
  auto sum = hn::Zero(d);
  const uint32_t* b = tile.b + column;
  for (size_t first = 0; first < tile.units; first += kShortUnits) {
    const uint32_t* a = tile.chunk(first / kChunk) + row * tile.a_row + first % kChunk;
    auto exact = hn::Zero(d32), other = hn::Zero(d32);
    for (size_t u = 0; u < kShortUnits; ++u, b += tile.width)
      exact = hn::ReorderWidenMulAccumulate(d32, hn::BitCast(d16, hn::Set(du, a[u])),
                                            hn::BitCast(d16, hn::LoadU(du, b)), exact, other);
    auto value = hn::ConvertTo(d, hn::RearrangeToOddPlusEven(exact, other));
    if (tile.run_scales)
      value =
          hn::Mul(value, hn::LoadU(d, tile.run_scales + first / kShortUnits * tile.width + column));
    sum = hn::Add(sum, value);
  }
  hn::StoreU(sum, d, static_cast<float*>(tile.sums) + row * tile.width + column);
}

using StripFunction = void (*)(const UnitTile&, size_t);
using Int8StripFunction = void (*)(const UnitTile&, const Spread&, size_t);
template <size_t... kRows>
constexpr std::array<Int8StripFunction, kTileRows> int8_strips(std::index_sequence<kRows...>) {
  return {&int8_strip<kRows + 1>...};
}
template <size_t... kRows>
constexpr std::array<StripFunction, kTileRows> bf16_strips(std::index_sequence<kRows...>) {
  return {&bf16_strip<kRows + 1>...};
}
template <size_t... kRows>
constexpr std::array<StripFunction, kTileRows> split_strips(std::index_sequence<kRows...>) {
  return {&split_strip<kRows + 1>...};
}

void int8_tile(const UnitTile& tile) {
  static constexpr auto kStrips = int8_strips(std::make_index_sequence<kTileRows>());
  Spread spread;
  spread.first = 0;
  do {
    spread.count = std::min(kSpreadUnits, tile.units - spread.first);
    spread_units(tile, spread);
    for (size_t j = 0; j < tile.width; j += kLanes) kStrips[tile.rows - 1](tile, spread, j);
    spread.first += spread.count;
  } while (spread.first < tile.units);
}
void bf16_tile(const UnitTile& tile) {
  static constexpr auto kStrips = bf16_strips(std::make_index_sequence<kTileRows>());
  for (size_t j = 0; j < tile.width; j += kLanes) kStrips[tile.rows - 1](tile, j);
}
void split_tile(const UnitTile& tile) {
  static constexpr auto kStrips = split_strips(std::make_index_sequence<kTileRows>());
  for (size_t j = 0; j < tile.width; j += kLanes) kStrips[tile.rows - 1](tile, j);
}

void digits_tile(const UnitTile& tile) {
  for (size_t r = 0; r < tile.rows; ++r)
    for (size_t j = 0; j < tile.width; j += kLanes) digits_strip(tile, r, j);
}

void shorts_tile(const UnitTile& tile) {
  for (size_t r = 0; r < tile.rows; ++r)
    for (size_t j = 0; j < tile.width; j += kLanes) shorts_strip(tile, r, j);
}

// Rounds f32 bits to their upper half, which the other half of the result repeats as zeros.
template <class V>
HWY_INLINE V round_upper(V bits) {
  const hn::ScalableTag<uint32_t> du;
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  // A NaN stays one.
  const auto nan = hn::Gt(hn::BitCast(D32(), hn::And(bits, hn::Set(du, 0x7fffffffu))),
                          hn::Set(D32(), 0x7f800000));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000u));
  const auto kept = hn::IfThenElse(hn::RebindMask(du, nan), quiet, rounded);
  return hn::And(kept, hn::Set(du, 0xffff0000u));
}

// One chunk of 32 values.
void split(const float* values, uint32_t* high, uint32_t* low) {
  const DF d;
  const hn::ScalableTag<uint32_t> du;
  HWY_ALIGN uint32_t upper[2 * kChunk], lower[2 * kChunk];
  for (size_t j = 0; j < 2 * kChunk; j += kLanes) {
    const auto x = hn::LoadU(d, values + j);
    const auto h = round_upper(hn::BitCast(du, x));
    hn::Store(h, du, upper + j);
    if (low) hn::Store(round_upper(hn::BitCast(du, hn::Sub(x, hn::BitCast(d, h)))), du, lower + j);
  }
  for (size_t u = 0; u < kChunk; ++u) high[u] = upper[2 * u] >> 16 | upper[2 * u + 1];
  for (size_t u = 0; low && u < kChunk; ++u) low[u] = lower[2 * u] >> 16 | lower[2 * u + 1];
}

void split_pixels_generic(const float* first, const float* second, size_t pixels, size_t step,
                          size_t count, uint32_t* high, uint32_t* low) {
  HWY_ALIGN float values[2 * kChunk] = {};
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t i = 0; i < std::min(count, kChunk); ++i) values[i] = first[p * step + i];
    for (size_t i = kChunk; second && i < count; ++i) values[i] = second[p * step + i - kChunk];
    split(values, high + p * kChunk, low ? low + p * kChunk : nullptr);
  }
}

void split_row_pairs_generic(const float* from, size_t step, size_t rows, size_t columns,
                             size_t width, size_t chunk, uint32_t* high, uint32_t* low) {
  HWY_ALIGN float values[2 * kChunk];
  for (size_t u = 0; u < (rows + 31) / 32 * kChunk; ++u)
    for (size_t j = 0; j < width; j += kChunk) {
      for (size_t i = 0; i < 2 * kChunk; ++i) {
        const size_t row = 2 * u + i % 2, column = j + i / 2;
        values[i] = row < rows && column < columns ? from[row * step + column] : 0.0f;
      }
      const size_t at = u / kChunk * chunk + u % kChunk * width + j;
      split(values, high + at, low ? low + at : nullptr);
    }
}

detail::PairFunction get_split_row_pairs() {
#if HWY_TARGET == HWY_AVX3
  if (detail::avx512_bf16_pairs()) return detail::avx512_bf16_pairs();
#endif
  return &split_row_pairs_generic;
}

detail::SplitFunction get_split_pixels() {
#if HWY_TARGET == HWY_AVX3
  if (detail::avx512_bf16_split()) return detail::avx512_bf16_split();
#endif
  return &split_pixels_generic;
}

UnitKernels get_unit_kernels() {
  UnitKernels kernels{kTileRows, &int8_tile, &bf16_tile, &split_tile, &digits_tile, &shorts_tile};
#if HWY_TARGET == HWY_AVX3
  kernels.avx512 = true;
  if (detail::vnni_shorts_tile()) kernels.shorts = detail::vnni_shorts_tile();
  if (detail::use_amx(kernels)) {
    kernels.few = detail::vnni_tile();
    return kernels;
  }
  if (detail::vnni_tile()) kernels.int8 = detail::vnni_tile(), kernels.in_place = true;
  if (detail::avx512_bf16_tile()) kernels.bf16 = detail::avx512_bf16_tile();
#endif
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(get_unit_kernels);
HWY_EXPORT(get_split_pixels);
HWY_EXPORT(get_split_row_pairs);
UnitKernels unit_kernels() { return HWY_DYNAMIC_DISPATCH(get_unit_kernels)(); }
void split_pixels(const float* first, const float* second, size_t pixels, size_t step, size_t count,
                  uint32_t* high, uint32_t* low) {
  HWY_DYNAMIC_DISPATCH(get_split_pixels)()(first, second, pixels, step, count, high, low);
}
void split_row_pairs(const float* from, size_t step, size_t rows, size_t columns, size_t width,
                     size_t chunk, uint32_t* high, uint32_t* low) {
  HWY_DYNAMIC_DISPATCH(get_split_row_pairs)()(from, step, rows, columns, width, chunk, high, low);
}
}  // namespace hologram::backends::dense
#endif
