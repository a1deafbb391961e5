#include "backends/cpu/dense/gemm_bits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/gemm_bits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/bits_tile.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
using VF = hn::Vec<DF>;
constexpr size_t kLanes = hn::MaxLanes(DF());
constexpr size_t kStrip = 2 * kLanes;  // columns at a time: two vectors
// Two parts of two vectors a row, beside weights and totals, have to stay in registers.
constexpr size_t kRows = HWY_MAX_BYTES == 64 ? kMaxBitsRows : 2;

// Eight words hold eight rows of codes; the number of row `Shift / 4` of each.
template <int Shift>
HWY_INLINE VF number_of(hn::Vec<DI> words, VF table) {
#if HWY_TARGET == HWY_AVX3
  // The permutation looks at the lowest four bits of a lane alone.
  return VF{_mm512_permutexvar_ps(hn::ShiftRight<Shift>(words).raw, table.raw)};
#else
  (void)table;
  const DI di;
  const auto code = hn::And(hn::ShiftRight<Shift>(words), hn::Set(di, 15));
  return hn::ConvertTo(DF(), hn::Sub(code, hn::Set(di, 8)));
#endif
}

template <size_t kCount>
struct Parts {
  VF even[kCount][2], odd[kCount][2];
  HWY_INLINE void clear() {
#pragma GCC unroll 8
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 2
      for (size_t v = 0; v < 2; ++v) even[r][v] = odd[r][v] = hn::Zero(DF());
  }
  template <bool kOdd>
  HWY_INLINE void add(const float* a, size_t lda, VF first, VF second) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kCount; ++r) {
      const VF x = hn::Set(DF(), a[r * lda]);
      VF* to = kOdd ? odd[r] : even[r];
      to[0] = hn::MulAdd(x, first, to[0]);
      to[1] = hn::MulAdd(x, second, to[1]);
    }
  }
};

template <size_t kCount>
HWY_INLINE void add_bytes(const BitsTile& t, const float* a, const int8_t* codes, size_t rows,
                          Parts<kCount>& parts) {
  const DI di;
  const hn::Rebind<int8_t, DI> d8;
  const auto load = [&](const int8_t* at) {
    return hn::ConvertTo(DF(), hn::PromoteTo(di, hn::LoadU(d8, at)));
  };
  size_t k = 0;
  for (; k + 2 <= rows; k += 2, codes += 2 * kPanelColumns) {
    parts.template add<false>(a + k, t.lda, load(codes), load(codes + kLanes));
    const int8_t* next = codes + kPanelColumns;
    parts.template add<true>(a + k + 1, t.lda, load(next), load(next + kLanes));
  }
  if (k < rows) parts.template add<false>(a + k, t.lda, load(codes), load(codes + kLanes));
}

template <size_t kCount, int... kSteps>
HWY_INLINE void add_words(const float* a, size_t lda, size_t rows, hn::Vec<DI> first,
                          hn::Vec<DI> second, VF table, Parts<kCount>& parts,
                          std::integer_sequence<int, kSteps...>) {
  const auto step = [&]<int kStep>() {
    if (static_cast<size_t>(kStep) < rows)
      parts.template add<kStep % 2 == 1>(a + kStep, lda, number_of<4 * kStep>(first, table),
                                         number_of<4 * kStep>(second, table));
  };
  (step.template operator()<kSteps>(), ...);
}

template <size_t kCount>
HWY_INLINE void add_nibbles(const BitsTile& t, const float* a, const int32_t* codes, size_t rows,
                            Parts<kCount>& parts) {
  const DI di;
  const DF df;
  // Lane i: what code i stands for. Where there are fewer lanes nobody looks it up.
  const VF table = hn::Sub(hn::ConvertTo(df, hn::Iota(di, 0)), hn::Set(df, 8.0f));
  constexpr auto kEight = std::make_integer_sequence<int, 8>();
  size_t k = 0;
  for (; k + 8 <= rows; k += 8, codes += kPanelColumns)
    add_words<kCount>(a + k, t.lda, 8, hn::LoadU(di, codes), hn::LoadU(di, codes + kLanes), table,
                      parts, kEight);
  if (k < rows)
    add_words<kCount>(a + k, t.lda, rows - k, hn::LoadU(di, codes), hn::LoadU(di, codes + kLanes),
                      table, parts, kEight);
}

// Pairs of 16-bit integers.
template <size_t kCount>
HWY_INLINE void add_pairs(const BitsTile& t, const float* a, const int32_t* codes, size_t rows,
                          Parts<kCount>& parts) {
  const DI di;
  const DF df;
  for (size_t k = 0; k < rows; k += 2, codes += kPanelColumns) {
    const auto first = hn::LoadU(di, codes), second = hn::LoadU(di, codes + kLanes);
    const auto even = [&](hn::Vec<DI> words) HWY_ATTR {
      return hn::ConvertTo(df, hn::ShiftRight<16>(hn::ShiftLeft<16>(words)));
    };
    parts.template add<false>(a + k, t.lda, even(first), even(second));
    if (k + 1 < rows)
      parts.template add<true>(a + k + 1, t.lda, hn::ConvertTo(df, hn::ShiftRight<16>(first)),
                               hn::ConvertTo(df, hn::ShiftRight<16>(second)));
  }
}

template <size_t kCount>
void strip(const BitsTile& t, size_t column) {
  const DF df;
  VF totals[kCount][2];
  for (auto& row : totals) row[0] = row[1] = hn::Zero(df);
  const std::byte* at = t.panel;
  for (size_t g = 0; g < t.groups; ++g) {
    const size_t first = g * t.group, rows = std::min(t.group, t.k - first);
    const auto* scales = reinterpret_cast<const float*>(at) + column;
    at += kPanelColumns * sizeof(float);
    const auto* zeros = reinterpret_cast<const float*>(at) + column;
    if (t.row_sums) at += kPanelColumns * sizeof(float);
    Parts<kCount> parts;
    parts.clear();
    if (t.bits == 8) {
      add_bytes<kCount>(t, t.a + first, reinterpret_cast<const int8_t*>(at) + column, rows, parts);
      at += rows * kPanelColumns;
    } else if (t.bits == 16) {
      add_pairs<kCount>(t, t.a + first, reinterpret_cast<const int32_t*>(at) + column, rows, parts);
      at += (rows + 1) / 2 * kPanelColumns * sizeof(uint32_t);
    } else {
      add_nibbles<kCount>(t, t.a + first, reinterpret_cast<const int32_t*>(at) + column, rows,
                          parts);
      at += (rows + 7) / 8 * kPanelColumns * sizeof(uint32_t);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < kCount; ++r)
#pragma GCC unroll 2
      for (size_t v = 0; v < 2; ++v) {
        VF sum = hn::Add(parts.even[r][v], parts.odd[r][v]);
        if (t.row_sums)
          sum = hn::NegMulAdd(hn::Set(df, t.row_sums[r * t.groups + g]),
                              hn::LoadU(df, zeros + v * kLanes), sum);
        totals[r][v] = hn::MulAdd(sum, hn::LoadU(df, scales + v * kLanes), totals[r][v]);
      }
  }
  for (size_t r = 0; r < kCount; ++r)
    for (size_t v = 0; v < 2; ++v)
      hn::StoreU(totals[r][v], df, t.sums + r * kPanelColumns + column + v * kLanes);
}

using StripFunction = void (*)(const BitsTile&, size_t);
template <size_t... kCounts>
constexpr std::array<StripFunction, kRows> strips(std::index_sequence<kCounts...>) {
  return {&strip<kCounts + 1>...};
}

void run_tile(const BitsTile& t) {
  static constexpr auto kStrips = strips(std::make_index_sequence<kRows>());
  for (size_t j = 0; j < kPanelColumns; j += kStrip) kStrips[t.rows - 1](t, j);
}

// The second: by rows of integers, or null.
std::pair<BitsKernel, const BitsKernel*> get_bits_kernels() {
#if HWY_TARGET == HWY_AVX3
  return {{kRows, &run_tile}, detail::vnni_bits()};
#else
  return {{kRows, &run_tile}, nullptr};
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(get_bits_kernels);

namespace {

constexpr size_t kMostExact = size_t{1} << 20;  // rows whose integer sums fit 32 bits
constexpr size_t kTogether = 16;                // panels
constexpr size_t kSmallWork = 128 * 1024;       // multiply-adds below which one thread is enough

size_t panels_of(const BitsForm& form) { return (form.n + kPanelColumns - 1) / kPanelColumns; }

size_t code_bytes(const BitsForm& form, size_t rows) {
  if (form.bits == 8) return rows * kPanelColumns;
  const size_t in_a_word = form.bits == 16 ? 2 : 8;
  return (rows + in_a_word - 1) / in_a_word * kPanelColumns * sizeof(uint32_t);
}

size_t panel_bytes(const BitsForm& form) {
  const size_t head = (form.zeros ? 2 : 1) * kPanelColumns * sizeof(float);
  size_t bytes = 0;
  for (size_t g = 0; g < form.groups(); ++g)
    bytes += head + code_bytes(form, std::min(form.group_rows(), form.k - g * form.group_rows()));
  return bytes;
}

// Of a row of A as integers.
size_t row_words(const BitsForm& form) {
  return form.k == 0 ? 0 : integer_words(form.k, form.group_rows(), form.bits);
}

// In a fixed order, whatever the level: sixteen sums of every sixteenth value, then one of those.
float sum_of(const float* values, size_t count) {
  float lanes[kChunk] = {};
  for (size_t i = 0; i < count; ++i) lanes[i % kChunk] += values[i];
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

size_t packed_b_bits_bytes(const BitsForm& form) { return panels_of(form) * panel_bytes(form); }

void pack_b_bits(const BitsForm& form, const BitsWeights& w, std::byte* packed) {
  const size_t groups = form.groups(), middle = form.bits == 8 ? 128 : 8;
  const auto code = [&](size_t k, size_t column) -> uint8_t {
    if (k >= form.k || column >= form.n) return static_cast<uint8_t>(middle);
    return w.codes[w.transposed ? column * form.k + k : k * form.n + column];
  };
  for (size_t first = 0; first < form.n; first += kPanelColumns)
    for (size_t g = 0; g < groups; ++g) {
      auto* head = reinterpret_cast<float*>(packed);
      for (size_t j = 0; j < kPanelColumns; ++j) {
        const size_t column = first + j;
        const bool inside = column < form.n;
        head[j] = inside ? w.scales[column * groups + g] : 0.0f;
        if (!form.zeros) continue;
        head[kPanelColumns + j] =
            inside && w.zeros ? w.zeros[column * groups + g] - static_cast<float>(middle) : 0.0f;
      }
      packed += (form.zeros ? 2 : 1) * kPanelColumns * sizeof(float);
      const size_t begin = g * form.group_rows(),
                   rows = std::min(form.group_rows(), form.k - begin);
      if (form.bits == 8) {
        for (size_t k = 0; k < rows; ++k)
          for (size_t j = 0; j < kPanelColumns; ++j)
            packed[k * kPanelColumns + j] =
                static_cast<std::byte>(code(begin + k, first + j) ^ 0x80);
      } else {
        for (size_t k = 0; k < rows; k += 8)
          for (size_t j = 0; j < kPanelColumns; ++j) {
            uint32_t word = 0;
            for (size_t i = 0; i < 8; ++i)
              word |=
                  static_cast<uint32_t>(k + i < rows ? code(begin + k + i, first + j) & 15 : middle)
                  << (4 * i);
            std::memcpy(packed + (k / 8 * kPanelColumns + j) * sizeof(word), &word, sizeof(word));
          }
      }
      packed += code_bytes(form, rows);
    }
}

void pack_b_words(const BitsForm& form, const float* b, size_t ldb, bool transposed,
                  std::byte* packed) {
  constexpr float kLargest = 32767.0f, kSmallest = 1e-30f;  // what is below is 0
  const size_t group = form.group_rows(), row_step = transposed ? 1 : ldb,
               column_step = transposed ? ldb : 1;
  std::memset(packed, 0, packed_b_bits_bytes(form));
  for (size_t first = 0; first < form.n; first += kPanelColumns)
    for (size_t begin = 0; begin < form.k; begin += group) {
      const size_t rows = std::min(group, form.k - begin);
      auto* scales = reinterpret_cast<float*>(packed);
      auto* codes = reinterpret_cast<int16_t*>(scales + kPanelColumns);
      for (size_t j = 0; j < std::min(kPanelColumns, form.n - first); ++j) {
        const float* from = b + begin * row_step + (first + j) * column_step;
        float largest = 0;
        bool finite = true;
        for (size_t k = 0; k < rows; ++k) {
          finite &= std::isfinite(from[k * row_step]);
          largest = std::max(largest, std::abs(from[k * row_step]));
        }
        scales[j] = !finite ? NAN : largest < kSmallest ? 0.0f : largest / kLargest;
        if (!(scales[j] > 0)) continue;
        for (size_t k = 0; k < rows; ++k)
          codes[(k / 2 * kPanelColumns + j) * 2 + k % 2] =
              static_cast<int16_t>(std::nearbyint(from[k * row_step] / scales[j]));
      }
      packed += kPanelColumns * sizeof(float) + code_bytes(form, rows);
    }
}

bool has_word_products() { return HWY_DYNAMIC_DISPATCH(get_bits_kernels)().second != nullptr; }

size_t gemm_bits_scratch_bytes(const GemmBits& g) {
  const size_t sums =
      g.form.zeros ? align_up(g.m * g.form.groups() * sizeof(float), kAlignment) : 0;
  return sums + g.m * row_words(g.form) * sizeof(uint32_t);
}

void gemm_bits(const GemmBits& g, std::byte* scratch, ThreadPool& pool) {
  if (g.m == 0 || g.form.n == 0) return;
  const auto [plain, by_integers] = HWY_DYNAMIC_DISPATCH(get_bits_kernels)();
  const bool whole =
      by_integers && g.form.k != 0 && integer_run(g.form.group_rows(), g.form.bits) <= kMostExact;
  const BitsKernel kernel = whole ? *by_integers : plain;
  const TileKernel finisher = tile_kernel();
  const size_t groups = g.form.groups(), panel = panel_bytes(g.form);
  float* row_sums = g.form.zeros ? reinterpret_cast<float*>(scratch) : nullptr;
  if (row_sums)
    for (size_t row = 0; row < g.m; ++row)
      for (size_t i = 0; i < groups; ++i) {
        const size_t first = i * g.form.group_rows();
        row_sums[row * groups + i] =
            sum_of(g.a + row * g.lda + first, std::min(g.form.group_rows(), g.form.k - first));
      }
  const size_t words = row_words(g.form);
  auto* integers = reinterpret_cast<uint32_t*>(
      scratch + (row_sums ? align_up(g.m * groups * sizeof(float), kAlignment) : 0));
  for (size_t row = 0; whole && row < g.m; ++row)
    kernel.pack(g.a + row * g.lda, g.form.k, g.form.group_rows(), g.form.bits,
                integers + row * words);
  const RowTiles tiles(g.m, kernel.rows);
  const auto multiply = [&](size_t p, size_t t, float* sums) {
    const size_t row = tiles.begin(t);
    kernel.run({.a = g.a + row * g.lda,
                .lda = g.lda,
                .rows = tiles.height(t),
                .row_sums = row_sums ? row_sums + row * groups : nullptr,
                .k = g.form.k,
                .group = g.form.group_rows(),
                .groups = groups,
                .bits = g.form.bits,
                .panel = g.packed_b + p * panel,
                .sums = sums,
                .integers = integers + row * words,
                .integer_row = words});
  };
  const auto finish = [&](size_t p, size_t t, float* sums) {
    const size_t row = tiles.begin(t), column = p * kPanelColumns;
    Tile tile;
    tile.rows = tiles.height(t);
    tile.columns = std::min(kPanelColumns, g.form.n - column);
    tile.row = row;
    tile.column = column;
    tile.epilogue = &g.epilogue;
    tile.lie_in(g.c, g.ldc);
    finisher.finish(tile, sums, kPanelColumns);
  };
  // Rows of one tile read panel after panel, which the finish of each would interrupt.
  const size_t together = tiles.tiles == 1 ? kTogether : 1;
  const auto run = [&](size_t begin, size_t end) {
    alignas(64) float sums[kTogether][kMaxBitsRows * kPanelColumns];
    for (size_t first = begin; first < end; first += together)
      for (size_t t = 0; t < tiles.tiles; ++t) {
        const size_t last = std::min(first + together, end);
        for (size_t p = first; p < last; ++p) multiply(p, t, sums[p - first]);
        for (size_t p = first; p < last; ++p) finish(p, t, sums[p - first]);
      }
  };
  // One row by 16 bits takes half the time that as many products of f32 do.
  const size_t small = g.form.bits == 16 ? 2 * kSmallWork : kSmallWork;
  const unsigned threads = g.m * g.form.n * g.form.k < small ? 1 : 0;
  const size_t panels = panels_of(g.form),
               grain = panels < 4 * together * pool.size() ? 1 : together;
  pool.parallel_for(panels, grain, run, Schedule::dynamic, threads);
}

}  // namespace hologram::backends::dense
#endif
