#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/dense/gemm_narrow.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/gemm_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/finish_int8.h"
#include "backends/cpu/dense/math-inl.h"
#include "backends/cpu/dense/quantize.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

#ifndef HOLOGRAM_DENSE_INT8_ONCE_
#define HOLOGRAM_DENSE_INT8_ONCE_
namespace hologram::backends::dense {
// What turns the raw sums of a tile into exact integers: sum + base[column] - row_sum *
// zero[column] - row_zero * column_sum[column]. The arrays start at the tile's row and column and
// are padded to whole panels.
struct Int8Repair {
  size_t rows, width;
  const int32_t* base;
  const int32_t* zeros;      // null: all 0
  const int32_t* row_sums;   // with zeros
  const int32_t* sums;       // of columns, with row_zeros; not padded
  const int32_t* row_zeros;  // null: all 0
  const float* scales;       // null: results stay integers; otherwise they become scale * f32
  const float* row_scales;   // null: all 1
};
// Of rows of f32: (sum - row_zero * column_sum) * scale * row_scale + bias, in f32, a residual, and
// nothing or gelu_near.
struct ValuesFinish {
  size_t rows, width;
  const int32_t *sums, *row_zeros;
  const float *scales, *row_scales;
  const float *bias, *residual;  // may be null
  size_t residual_row;
  float* to;
  size_t to_row;
};
using FinishValues = void (*)(const ValuesFinish&, const int32_t*);
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;

void repair_int8(const Int8Repair& repair, int32_t* sums) {
  const DF df;
  const DI di;
  constexpr size_t kLanes = hn::MaxLanes(di);
  for (size_t j = 0; j < repair.width; j += kLanes) {
    const auto base = hn::LoadU(di, repair.base + j);
    const auto zero = repair.zeros ? hn::LoadU(di, repair.zeros + j) : hn::Zero(di);
    const auto scale = repair.scales ? hn::LoadU(df, repair.scales + j) : hn::Zero(df);
    for (size_t r = 0; r < repair.rows; ++r) {
      int32_t* at = sums + r * repair.width + j;
      auto v = hn::Add(hn::LoadU(di, at), base);
      if (repair.zeros) v = hn::Sub(v, hn::Mul(hn::Set(di, repair.row_sums[r]), zero));
      if (repair.row_zeros)
        v = hn::Sub(v, hn::Mul(hn::Set(di, repair.row_zeros[r]), hn::LoadU(di, repair.sums + j)));
      if (repair.scales) {
        auto f = hn::Mul(hn::ConvertTo(df, v), scale);
        if (repair.row_scales) f = hn::Mul(f, hn::Set(df, repair.row_scales[r]));
        v = hn::BitCast(di, f);
      }
      hn::StoreU(v, di, at);
    }
  }
}

// One row of A as units, its chunks `step` bytes apart: every byte with `flip` changed; zeros after
// the last. Says the sum of the bytes.
uint32_t pack_row(const uint8_t* from, size_t count, uint8_t flip, uint8_t* to, size_t step) {
  const hn::CappedTag<uint8_t, kChunk * 4> d8;
  const hn::Repartition<uint64_t, decltype(d8)> d64;
  constexpr size_t kBytes = kChunk * 4;
  const size_t lanes = hn::Lanes(d8);
  const auto flips = hn::Set(d8, flip);
  auto sums = hn::Zero(d64);
  const hn::FixedTag<uint8_t, 16> d16;
  const hn::FixedTag<uint64_t, 2> d64_2;
  auto few = hn::Zero(d64_2);
  uint32_t rest = 0;
  for (size_t i = 0; i < count; i += kBytes, to += step) {
    if (count - i >= kBytes) {
      for (size_t j = 0; j < kBytes; j += lanes) {
        const auto v = hn::Xor(hn::LoadU(d8, from + i + j), flips);
        hn::StoreU(v, d8, to + j);
        sums = hn::Add(sums, hn::SumsOf8(v));
      }
    } else {
      for (size_t j = 0; j < kBytes; j += lanes) hn::StoreU(hn::Zero(d8), d8, to + j);
      size_t j = 0;
      for (; i + j + 16 <= count; j += 16) {
        const auto v = hn::Xor(hn::LoadU(d16, from + i + j), hn::Set(d16, flip));
        hn::StoreU(v, d16, to + j);
        few = hn::Add(few, hn::SumsOf8(v));
      }
      for (; i + j < count; ++j) {
        to[j] = from[i + j] ^ flip;
        rest += to[j];
      }
    }
  }
  rest += static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d64_2, few)));
  return rest + static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
}

// Sums of a tile by rows of f32, to results, in one pass over it.
template <bool kResidual, bool kGelu>
void finish_values(const ValuesFinish& t, const int32_t* sums) {
  const DF df;
  const DI di;
  constexpr size_t kLanes = hn::MaxLanes(di);
  float zeros[kMaxUnitRows];
  for (size_t r = 0; r < t.rows; ++r) zeros[r] = static_cast<float>(t.row_zeros[r]);
  for (size_t j = 0; j < t.width; j += kLanes) {
    const auto weights = hn::ConvertTo(df, hn::LoadU(di, t.sums + j));
    const auto scale = hn::LoadU(df, t.scales + j);
    const auto bias = t.bias ? hn::LoadU(df, t.bias + j) : hn::Zero(df);
    for (size_t r = 0; r < t.rows; ++r) {
      auto v = hn::ConvertTo(df, hn::LoadU(di, sums + r * t.width + j));
      v = hn::Mul(hn::NegMulAdd(hn::Set(df, zeros[r]), weights, v), scale);
      v = hn::MulAdd(v, hn::Set(df, t.row_scales[r]), bias);
      if constexpr (kResidual) v = hn::Add(v, hn::LoadU(df, t.residual + r * t.residual_row + j));
      if constexpr (kGelu) v = gelu_near(df, v);
      hn::StoreU(v, df, t.to + r * t.to_row + j);
    }
  }
}

FinishValues get_finish_values(bool residual, bool gelu) {
  if (residual) return gelu ? &finish_values<true, true> : &finish_values<true, false>;
  return gelu ? &finish_values<false, true> : &finish_values<false, false>;
}

// One row of A as units from f32: saturate(round(value * factor + zero)), zeros after the last.
// Says whether all are finite.
bool pack_values(const float* from, size_t count, float factor, float zero, uint8_t* to,
                 size_t step) {
  const DF df;
  const hn::Repartition<int16_t, DF> d16;
  const hn::Rebind<uint8_t, decltype(d16)> d8;
  constexpr size_t kLanes = hn::MaxLanes(df), kRun = 4 * kLanes, kBytes = kChunk * 4;
  // Numbers near 1.5 * 2^23 are their own low bits. Adding the zero point, a whole number, before
  // rounding changes nothing but ties.
  const auto factors = hn::Set(df, factor), shift = hn::Set(df, zero + 12582912.0f);
  auto nothing = hn::Zero(df), nothing1 = nothing;  // NaN where 0 times something was
  const auto convert = [&](const float* values, uint8_t* bytes) HWY_ATTR {
    const auto a = hn::LoadU(df, values), b = hn::LoadU(df, values + kLanes);
    const auto c = hn::LoadU(df, values + 2 * kLanes), e = hn::LoadU(df, values + 3 * kLanes);
    nothing = hn::MulAdd(a, hn::Zero(df), hn::MulAdd(b, hn::Zero(df), nothing));
    nothing1 = hn::MulAdd(c, hn::Zero(df), hn::MulAdd(e, hn::Zero(df), nothing1));
    const auto put = [&](hn::Vec<DF> low, hn::Vec<DF> high, uint8_t* at) HWY_ATTR {
      const auto words = hn::ConcatEven(d16, hn::BitCast(d16, hn::MulAdd(high, factors, shift)),
                                        hn::BitCast(d16, hn::MulAdd(low, factors, shift)));
      hn::StoreU(hn::DemoteTo(d8, words), d8, at);
    };
    put(a, b, bytes);
    put(c, e, bytes + 2 * kLanes);
  };
  for (size_t i = 0; i < count; i += kBytes, to += step) {
    size_t j = 0;
    for (; j < kBytes && i + j + kRun <= count; j += kRun) convert(from + i + j, to + j);
    if (j == kBytes) continue;
    std::memset(to + j, 0, kBytes - j);
    if (i + j >= count) continue;
    HWY_ALIGN float rest[kRun] = {};
    HWY_ALIGN uint8_t bytes[kRun];
    std::memcpy(rest, from + i + j, (count - i - j) * sizeof(float));
    convert(rest, bytes);
    std::memcpy(to + j, bytes, count - i - j);
  }
  return hn::AllFalse(df, hn::IsNaN(hn::Add(nothing, nothing1)));
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(repair_int8);
HWY_EXPORT(pack_row);
HWY_EXPORT(pack_values);
HWY_EXPORT(get_finish_values);

namespace {

size_t units_of(size_t k) { return (k + 3) / 4; }

// Whether finish_values does all of it.
bool is_plain(const Epilogue& e) {
  return e.alpha == 1.0f && (!e.bias || e.bias_axis == BiasAxis::column) && !e.post && !e.program &&
         (!e.residual || (e.residual_scale == 1.0f && !e.residual_last)) &&
         (e.activation == Activation::none || e.activation == Activation::gelu_near);
}

// The head of packed weights: sums of the columns, then one line with the signedness.
size_t head_bytes(size_t n) { return align_up(n * sizeof(int32_t), kAlignment) + kAlignment; }

// Scratch beside the packed A.
struct Places {
  size_t row_sums, base, zeros, scales, biases, steps, row_zeros, row_scales, total;
  explicit Places(const GemmInt8& g) {
    const size_t columns = align_up(g.n, kPanelColumns) * sizeof(int32_t);
    row_sums = align_up(unit_gemm_scratch_bytes(g.m, units_of(g.k)), kAlignment);
    base = row_sums + align_up(g.m * sizeof(int32_t), kAlignment);
    zeros = base + columns;
    scales = zeros + columns;
    biases = scales + columns;
    steps = biases + columns;
    row_zeros = steps + align_up(units_of(g.k), kChunk) / kChunk * sizeof(ptrdiff_t);
    row_scales = row_zeros + (g.values ? g.m * sizeof(int32_t) : 0);
    total = row_scales + (g.values ? g.m * sizeof(float) : 0);
  }
};

}  // namespace

size_t packed_b_int8_bytes(size_t k, size_t n) {
  return head_bytes(n) + unit_panel_units(n, units_of(k)) * sizeof(uint32_t);
}

void pack_b_int8(size_t k, size_t n, const void* b, size_t ldb, bool transposed, bool b_signed,
                 std::byte* packed) {
  const auto* from = static_cast<const uint8_t*>(b);
  const size_t units = units_of(k);
  std::memset(packed, 0, packed_b_int8_bytes(k, n));
  auto* sums = reinterpret_cast<int32_t*>(packed);
  packed[head_bytes(n) - kAlignment] = static_cast<std::byte>(b_signed);
  auto* panels = reinterpret_cast<int8_t*>(packed + head_bytes(n));
  // Unsigned weights are kept 128 lower, and so is their zero point.
  const uint8_t flip = b_signed ? 0 : 0x80;
  const size_t row_step = transposed ? 1 : ldb, column_step = transposed ? ldb : 1;
  for (size_t column = 0; column < n; column += kPanelColumns) {
    const size_t width = std::min<size_t>(kPanelColumns, align_up(n, kChunk) - column);
    const size_t inside = std::min(kPanelColumns, n - column);
    int8_t* unit = panels + column * units * 4;
    for (size_t i = 0; i < k; ++i, unit += i % 4 == 0 ? width * 4 : 0) {
      const uint8_t* row = from + i * row_step + column * column_step;
      for (size_t j = 0; j < inside; ++j) {
        const auto value = static_cast<int8_t>(row[j * column_step] ^ flip);
        unit[j * 4 + i % 4] = value;
        sums[column + j] += value;
      }
    }
  }
}

size_t gemm_int8_scratch_bytes(const GemmInt8& g) { return Places(g).total; }

void gemm_int8(const GemmInt8& g, std::byte* scratch, ThreadPool& pool) {
  const Places places(g);
  auto* row_sums = reinterpret_cast<int32_t*>(scratch + places.row_sums);
  auto* base = reinterpret_cast<int32_t*>(scratch + places.base);
  auto* zeros = reinterpret_cast<int32_t*>(scratch + places.zeros);
  auto* scales = reinterpret_cast<float*>(scratch + places.scales);
  auto* biases = reinterpret_cast<float*>(scratch + places.biases);
  auto* row_zeros = reinterpret_cast<int32_t*>(scratch + places.row_zeros);
  auto* row_scales = reinterpret_cast<float*>(scratch + places.row_scales);
  const auto* column_sums = reinterpret_cast<const int32_t*>(g.packed_b);
  const bool b_signed = g.packed_b[head_bytes(g.n) - kAlignment] != std::byte{0};

  const bool bytes = g.output >= Int8Output::s8;
  const int32_t least = g.output == Int8Output::s8 ? -128 : 0;
  const Quantizer quantizer{g.output_scale, g.output_zero, std::max(least, g.output_low),
                            std::min(least + 255, g.output_high)};
  Int8Bytes direct{.to_row = g.ldc};
  const bool in_one_pass =
      bytes && !g.values && finishes_int8_bytes(g.epilogue, quantizer, direct.codes);
  const float divisor = in_one_pass ? g.output_scale : 1.0f;

  // sum (a - za)(b - zb) = sum ab - za sum b - zb sum a + k za zb, with a and b as they are packed.
  // Sums wrap as the definition's do: unsigned arithmetic.
  const auto a_zero = g.values ? 0u : static_cast<uint32_t>(g.a_zero + (g.a_signed ? 128 : 0));
  // A loop each, of few operands: a product of one row takes a microsecond or two.
  const size_t padded = align_up(g.n, kPanelColumns);
  const auto spread = [&](const auto* from, auto absent, auto* to) {
    if (from)
      std::copy_n(from, g.n, to);
    else
      std::fill_n(to, g.n, absent);
    std::fill(to + g.n, to + padded, absent);
  };
  bool any_zero = false;
  if (g.b_zeros || !b_signed) {
    spread(g.b_zeros, 0, zeros);
    const int32_t flipped = b_signed ? 0 : 128;
    for (size_t j = 0; j < g.n; ++j) {
      zeros[j] -= flipped;
      any_zero |= zeros[j] != 0;
    }
  }
  spread(g.bias32, 0, base);
  if (a_zero != 0)
    for (size_t j = 0; j < g.n; ++j) {
      const uint32_t others = any_zero ? static_cast<uint32_t>(zeros[j]) : 0u;
      base[j] = static_cast<int32_t>(
          static_cast<uint32_t>(base[j]) +
          a_zero * (static_cast<uint32_t>(g.k) * others - static_cast<uint32_t>(column_sums[j])));
    }
  spread(g.scales, 1.0f, scales);
  if (in_one_pass) {
    const bool has_bias = g.epilogue.bias && g.epilogue.bias_axis == BiasAxis::column;
    spread(has_bias ? g.epilogue.bias : nullptr, 0.0f, biases);
    for (size_t j = 0; j < padded; ++j) scales[j] /= divisor, biases[j] /= divisor;
  }

  const auto pack_one = HWY_DYNAMIC_DISPATCH(pack_row);
  const auto pack_floats = HWY_DYNAMIC_DISPATCH(pack_values);
  const uint8_t flip = g.a_signed ? 0x80 : 0;
  // A row whose bytes lie apart, from piece to piece.
  const auto pack_pieces = [&](size_t row, uint8_t* to, size_t step) -> uint32_t {
    const size_t bytes = g.rows->bytes;
    if (bytes % 64 != 0) {
      // What lies behind the row meets weights of 0; the sum is not asked for.
      if (flip == 0 && !any_zero && g.k + 15 <= 64) {
        g.rows->fill(row, to);
        return 0;
      }
      uint8_t line[Int8Rows::kMaxBytes + 64];
      g.rows->fill(row, line);
      // Zeros to a whole chunk change nothing and spare the bytewise end of the row.
      const size_t count = flip == 0 ? align_up(g.k, 64) : g.k;
      std::memset(line + g.k, 0, 64);
      return pack_one(line, count, flip, to, step);
    }
    const uint8_t* pieces[Int8Rows::kMaxPieces];
    g.rows->find(row, pieces);
    uint32_t sum = 0;
    for (size_t p = 0; p < g.rows->pieces; ++p, to += bytes / 64 * step)
      sum += pack_one(pieces[p], bytes, flip, to, step);
    return sum;
  };
  const auto pack = [&](size_t row, size_t height, uint32_t* packed) {
    const size_t step = height * kChunk * sizeof(uint32_t);
    for (size_t r = 0; r < height; ++r) {
      auto* to = reinterpret_cast<uint8_t*>(packed + r * kChunk);
      if (g.values) {
        const float* values = g.values + (row + r) * g.lda;
        const Range range = range_of(values, g.k);
        // A row of zeros must not divide by 0; one that is not finite makes its results NaN.
        const float whole = range.high / 255.0f - range.low / 255.0f;
        const float scale = whole >= FLT_MIN && whole < HUGE_VALF ? whole : 1.0f;
        const float zero = std::nearbyint(std::min(std::max(-range.low / scale, 0.0f), 255.0f));
        row_zeros[row + r] = static_cast<int32_t>(zero);
        const bool finite = pack_floats(values, g.k, 1.0f / scale, zero, to, step);
        row_scales[row + r] = finite ? scale : std::numeric_limits<float>::quiet_NaN();
        continue;
      }
      row_sums[row + r] = static_cast<int32_t>(
          g.rows ? pack_pieces(row + r, to, step)
                 : pack_one(static_cast<const uint8_t*>(g.a) + (row + r) * g.lda, g.k, flip, to,
                            step));
    }
  };
  const auto repair = HWY_DYNAMIC_DISPATCH(repair_int8);
  const TileKernel kernel = tile_kernel();
  const bool whole = g.output == Int8Output::s32;
  const Epilogue epilogue = g.values ? nearly(g.epilogue) : g.epilogue;
  const FinishValues finish_whole =
      g.values && g.output == Int8Output::f32 && !any_zero && !g.bias32 && is_plain(epilogue)
          ? HWY_DYNAMIC_DISPATCH(get_finish_values)(epilogue.residual != nullptr,
                                                    epilogue.activation == Activation::gelu_near)
          : nullptr;
  const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
    if (finish_whole && column + width <= g.n) {
      const size_t stride = epilogue.residual_stride ? epilogue.residual_stride : g.ldc;
      return finish_whole(
          {.rows = rows,
           .width = width,
           .sums = column_sums + column,
           .row_zeros = row_zeros + row,
           .scales = scales + column,
           .row_scales = row_scales + row,
           .bias = epilogue.bias ? epilogue.bias + column : nullptr,
           .residual = epilogue.residual ? epilogue.residual + row * stride + column : nullptr,
           .residual_row = stride,
           .to = static_cast<float*>(g.c) + row * g.ldc + column,
           .to_row = g.ldc},
          static_cast<const int32_t*>(sums));
    }
    if (in_one_pass) {
      Int8Bytes f = direct;
      f.rows = rows, f.width = width, f.columns = std::min(width, g.n - column);
      f.base = base + column;
      if (any_zero) f.zeros = zeros + column, f.row_sums = row_sums + row;
      f.scales = scales + column;
      if (g.epilogue.bias) f.biases = biases + column;
      f.to = static_cast<uint8_t*>(g.c) + row * g.ldc + column;
      return finish_int8_bytes(f, static_cast<const int32_t*>(sums));
    }
    repair({.rows = rows,
            .width = width,
            .base = base + column,
            .zeros = any_zero ? zeros + column : nullptr,
            .row_sums = row_sums + row,
            .sums = g.values ? column_sums + column : nullptr,
            .row_zeros = g.values ? row_zeros + row : nullptr,
            .scales = whole ? nullptr : scales + column,
            .row_scales = g.values ? row_scales + row : nullptr},
           static_cast<int32_t*>(sums));
    const size_t columns = std::min(width, g.n - column);
    if (whole) {
      for (size_t r = 0; r < rows; ++r)
        std::memcpy(static_cast<int32_t*>(g.c) + (row + r) * g.ldc + column,
                    static_cast<int32_t*>(sums) + r * width, columns * sizeof(int32_t));
      return;
    }
    alignas(64) float values[kMaxUnitRows * kPanelColumns];
    Tile tile;
    tile.rows = rows;
    tile.columns = columns;
    tile.row = row;
    tile.column = column;
    tile.epilogue = &epilogue;
    tile.lie_in(static_cast<float*>(g.c), g.ldc);
    if (bytes) {
      tile.c = values;
      tile.c_row = kPanelColumns;
    }
    kernel.finish(tile, static_cast<float*>(sums), width);
    for (size_t r = 0; bytes && r < rows; ++r)
      quantize(quantizer, values + r * kPanelColumns, columns,
               static_cast<uint8_t*>(g.c) + (row + r) * g.ldc + column);
  };
  const UnitKernels kernels = unit_kernels();
  UnitGemm product{.m = g.m,
                   .n = g.n,
                   .units = units_of(g.k),
                   .packed_b = reinterpret_cast<const uint32_t*>(g.packed_b + head_bytes(g.n)),
                   .tile = kernels.int8,
                   .pack_a = pack,
                   .finish = finish};
  // Bytes that need no change and whose sums nobody asks for are read where they lie, unless the
  // rows of a tile would meet in the same lines of the near cache.
  if (kernels.in_place && !g.rows && !g.values && flip == 0 && !any_zero && g.k % 4 == 0 &&
      g.lda % 4 == 0 && g.lda % 2048 != 0 &&
      reinterpret_cast<uintptr_t>(g.a) % alignof(uint32_t) == 0) {
    auto* steps = reinterpret_cast<ptrdiff_t*>(scratch + places.steps);
    for (size_t c = 0; c * kChunk < product.units; ++c)
      steps[c] = static_cast<ptrdiff_t>(c * kChunk);
    product.image = static_cast<const uint32_t*>(g.a);
    product.image_row = g.lda / sizeof(uint32_t);
    product.steps = steps;
  }
  unit_gemm(product, scratch, pool);
}

}  // namespace hologram::backends::dense
#endif
