#include "backends/cpu/dense/tile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/finish-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());
// Accumulators are rows x 2 vectors; two more hold B and one A: 31 of 32 registers of AVX-512, 15
// of the 16 of AVX2 and SSE4.
constexpr size_t kTileRows = HWY_MAX_BYTES == 64 ? kMaxTileRows : 6;
constexpr size_t kStripColumns = 2 * kLanes;
// 6 x 4 vectors: 24, and 5 more. Other CPUs have no registers for that.
constexpr size_t kWideRows = HWY_MAX_BYTES == 64 ? kWideTileRows : 0;
// So many steps before its use a line of B is asked for, and the rows of the next chunk with each
// chunk; 0: never. A strip of 16 columns reads every second line of a panel, and a wide one two
// panels: what CPUs bring near by themselves comes late, from a cache that a busy hyperthread
// shares most of all.
constexpr size_t near_steps(size_t vectors) {
  if (kLanes == 8) return 16;
  return vectors > 2 ? 8 : 0;
}

// On SSE4, where speed counts less, all strides share one strip, which is smaller.
constexpr ptrdiff_t kKnownStride = kLanes > 4 ? 16 : 0;

// What a strip does with its sums: either everything (`direct`), or it leaves them for finish().
struct Strip {
  bool direct;
  ClipRange clip;  // of the direct path
  float* sums;     // [rows][width], when not direct
  size_t width;    // 16, 32 or 64
  float* parts;    // sums of the parts that are finished: tile.aside times those of a strip, or,
                   // where the tile has a place for them, of all strips
};

HWY_ALIGN constexpr float kZeros[kTileRows * kStripColumns] = {};

// kRowStride 0: the tile's own a_row. A compile-time stride turns row addresses into displacements.
template <size_t kRows, size_t kVectors, ptrdiff_t kRowStride>
void run_strip(const Tile& tile, const Strip& strip, size_t column) {
  const D d;
  const ptrdiff_t row_stride = kRowStride ? kRowStride : tile.a_row;
  constexpr size_t kNear = near_steps(kVectors);
  constexpr bool kMayAsk = kVectors * kLanes == kPanelColumns && kRowStride == kKnownStride;
  V sums[kRows][kVectors];
  const float* start = tile.start ? tile.start + column : kZeros;
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r, start += tile.start_row)
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::LoadU(d, start + v * kLanes);

  // The result's lines are on their way while it is summed up. Wide tiles alone: the others' sums
  // are shorter or their rows lie side by side, and gain nothing.
  if constexpr (kVectors > 2) {
    if (strip.direct) {
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v)
          __builtin_prefetch(tile.c + static_cast<ptrdiff_t>(r) * tile.c_row +
                                 static_cast<ptrdiff_t>(v) * tile.c_block,
                             1);
    }
  }
  const float* b = tile.b + column;
  const size_t b_stride = tile.b_stride, far = tile.b_far;
  // The third and fourth vector of B lie in the next panel.
  const size_t panel = kVectors > 2 ? tile.b_panel - 2 * kLanes : 0;
  const auto load_b = [&](size_t v)
                          HWY_ATTR { return hn::LoadU(d, b + v * kLanes + (v < 2 ? 0 : panel)); };
  const float* ahead = tile.ahead;
  const size_t ahead_lines = column == 0 ? tile.ahead_lines : 0;
  const size_t longest = tile.part ? tile.part : ~size_t{0};
  size_t parts = tile.before == 0 ? 0 : (tile.before - 1) / longest;
  size_t part = tile.before - parts * tile.part;
  constexpr size_t kSums = kRows * kVectors * kLanes;
  float* const all_aside = strip.parts + (tile.parts ? column * kRows : 0);
  const size_t aside_floats = tile.parts ? strip.width * kRows : kSums;
  for (size_t t = 0; t < tile.tap_count; ++t) {
    const float* a = tile.a + tile.taps[t];
    for (size_t c = 0; c < tile.chunks; ++c, a += tile.a_chunk) {
      const size_t count = c + 1 == tile.chunks ? tile.last : kChunk;
      for (size_t l = 0; l < ahead_lines; ++l, ahead += kChunk) {
        __builtin_prefetch(ahead, 0, 2);
        if constexpr (kVectors > 2) __builtin_prefetch(ahead + tile.b_panel, 0, 2);
      }
      if constexpr (kNear > 0)
#pragma GCC unroll 16
        for (size_t r = 0; r < kRows; ++r)
          __builtin_prefetch(a + tile.a_chunk + static_cast<ptrdiff_t>(r) * row_stride);
      size_t i = 0;
      if (part++ == longest) {
        part = 1;
        // Between the first products of the next part, which would wait behind these sums.
        float* const aside = all_aside + (parts & (tile.aside - 1)) * aside_floats;
        const float* before = parts < tile.aside ? kZeros : aside;
        ++parts;
        V bs[kVectors];
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) bs[v] = load_b(v);
#pragma GCC unroll 16
        for (size_t r = 0; r < kRows; ++r) {
          const V as = hn::Set(d, a[static_cast<ptrdiff_t>(r) * row_stride]);
#pragma GCC unroll 4
          for (size_t v = 0; v < kVectors; ++v) {
            const size_t at = (r * kVectors + v) * kLanes;
            hn::Store(hn::Add(sums[r][v], hn::Load(d, before + at)), d, aside + at);
            sums[r][v] = hn::Mul(as, bs[v]);
          }
        }
        ++i;
        b += b_stride;
      }
      const auto step = [&]<bool kAsks>(size_t at) HWY_ATTR {
        if constexpr (kAsks) {
          __builtin_prefetch(b + far, 0, 2);
          __builtin_prefetch(b + far + kChunk, 0, 2);
        }
        if constexpr (kNear > 0)
#pragma GCC unroll 4
          for (size_t v = 0; v < kVectors * kLanes / kChunk; ++v)
            __builtin_prefetch(b + kNear * b_stride + v * kChunk + (v < 2 ? 0 : panel));
        V bs[kVectors];
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) bs[v] = load_b(v);
#pragma GCC unroll 16
        for (size_t r = 0; r < kRows; ++r) {
          const V as = hn::Set(d, a[static_cast<ptrdiff_t>(r) * row_stride + at]);
#pragma GCC unroll 4
          for (size_t v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(as, bs[v], sums[r][v]);
        }
        b += b_stride;
      };
      // Nearly all chunks are whole. A loop whose end is known leaves GCC the registers to keep all
      // addresses: one that reads two of them from the stack is 5% slower.
      if (i == 0 && count == kChunk) {
        if (kMayAsk && far != 0) {
#pragma GCC unroll 2
          for (size_t at = 0; at < kChunk; ++at) step.template operator()<kMayAsk>(at);
        } else {
#pragma GCC unroll 2
          for (size_t at = 0; at < kChunk; ++at) step.template operator()<false>(at);
        }
      } else {
        for (; i < count; ++i) step.template operator()<false>(i);
      }
    }
  }
  for (size_t p = 0; !tile.paused && p < std::min(parts, tile.aside); ++p)
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v)
        sums[r][v] = hn::Add(
            sums[r][v], hn::Load(d, all_aside + p * aside_floats + (r * kVectors + v) * kLanes));
  if (!strip.direct) {
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v)
        hn::StoreU(sums[r][v], d, strip.sums + r * strip.width + column + v * kLanes);
    return;
  }
  const Epilogue& epilogue = *tile.epilogue;
  const ptrdiff_t c_row = tile.c_row, residual_row = tile.residual_row;
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const size_t j = column + v * kLanes;
    const ptrdiff_t place = static_cast<ptrdiff_t>(j / kChunk) * tile.c_block + j % kChunk;
    if (epilogue.bias) {
      const V bias = hn::LoadU(d, epilogue.bias + tile.column + j);
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) sums[r][v] = hn::Add(sums[r][v], bias);
    }
    if (tile.residual) {
      const float* residual = tile.residual + place;
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][v] = hn::Add(sums[r][v], hn::LoadU(d, residual));
        residual += residual_row;
      }
    }
    if (strip.clip.clips) {
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r)
        sums[r][v] = clamp(d, sums[r][v], strip.clip.low, strip.clip.high);
    }
    float* c = tile.c + place;
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      hn::StoreU(sums[r][v], d, c);
      c += c_row;
    }
  }
}

using StripFunction = void (*)(const Tile&, const Strip&, size_t);

template <size_t kVectors, ptrdiff_t kRowStride, size_t... kRows>
constexpr std::array<StripFunction, sizeof...(kRows)> strips(std::index_sequence<kRows...>) {
  return {&run_strip<kRows + 1, kVectors, kRowStride>...};
}
// So do rows two apart, of steps of two pixels, where a last panel has 16 columns.
template <size_t kVectors>
constexpr std::array<std::array<StripFunction, kTileRows>, 3> kStrips = {
    strips<kVectors, kKnownStride>(std::make_index_sequence<kTileRows>()),
    strips<kVectors, kVectors == 1 ? 0 : 2 * kKnownStride>(std::make_index_sequence<kTileRows>()),
    strips<kVectors, 0>(std::make_index_sequence<kTileRows>())};
constexpr std::array<StripFunction, kWideRows> kWideStrips =
    strips<4, 0>(std::make_index_sequence<kWideRows>());

// finish_rows where the epilogue is direct and the columns are whole vectors: no branch inside.
template <bool kBias, bool kResidual, bool kClip>
void finish_direct(const Tile& tile, const float* sums, size_t width) {
  const D d;
  const ClipRange clip = clip_range(*tile.epilogue);
  const float* bias = kBias ? tile.epilogue->bias + tile.column : nullptr;
  for (size_t j = 0; j < tile.columns; j += kLanes) {
    const ptrdiff_t block = static_cast<ptrdiff_t>(j / kChunk) * tile.c_block + j % kChunk;
    const V add = kBias ? hn::LoadU(d, bias + j) : hn::Zero(d);
    const float* from = sums + j;
    const float* residual = kResidual ? tile.residual + block : nullptr;
    float* to = tile.c + block;
    for (size_t r = 0; r < tile.rows; ++r, from += width, to += tile.c_row) {
      V x = hn::LoadU(d, from);
      if constexpr (kBias) x = hn::Add(x, add);
      if constexpr (kResidual) {
        x = hn::Add(x, hn::LoadU(d, residual));
        residual += tile.residual_row;
      }
      if constexpr (kClip) x = clamp(d, x, clip.low, clip.high);
      hn::StoreU(x, d, to);
    }
  }
}
using DirectFunction = void (*)(const Tile&, const float*, size_t);
template <size_t... kCase>
constexpr std::array<DirectFunction, 8> direct_cases(std::index_sequence<kCase...>) {
  return {&finish_direct<(kCase & 1) != 0, (kCase & 2) != 0, (kCase & 4) != 0>...};
}
constexpr auto kDirect = direct_cases(std::make_index_sequence<8>());

// Rows of the output are rows of the tile. One loop over all vectors of the tile: the long chains
// of an activation need many of them in flight.
void finish_rows(const Tile& tile, float* sums, size_t width) {
  const D d;
  const Epilogue& e = *tile.epilogue;
  if (is_direct(e) && tile.columns % kChunk == 0)
    return kDirect[(e.bias ? 1 : 0) + (tile.residual ? 2 : 0) + (clip_range(e).clips ? 4 : 0)](
        tile, sums, width);
  const float* bias = e.bias && e.bias_axis == BiasAxis::column ? e.bias + tile.column : nullptr;
  const float* row_bias = e.bias && !bias ? e.bias + tile.row : nullptr;
  // Most have a bias and an activation alone.
  if (e.alpha == 1.0f && !row_bias && !tile.residual && !e.post && !e.program &&
      tile.columns % kChunk == 0) {
    with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
      for (size_t j = 0; j < tile.columns; j += kLanes) {
        const V add = bias ? hn::LoadU(d, bias + j) : hn::Set(d, -0.0f);
        const float* from = sums + j;
        float* to = tile.c + static_cast<ptrdiff_t>(j / kChunk) * tile.c_block + j % kChunk;
        for (size_t r = 0; r < tile.rows; ++r, from += width, to += tile.c_row)
          hn::StoreU(function(hn::Add(hn::LoadU(d, from), add)), d, to);
      }
    });
    return;
  }
  with_activation(d, e.activation, e.first, e.second, [&](auto function) HWY_ATTR {
    for (size_t r = 0; r < tile.rows; ++r) {
      const float constant = row_bias ? row_bias[r] : 0.0f;
      for (size_t j = 0; j < tile.columns; j += kLanes) {
        const ptrdiff_t block = static_cast<ptrdiff_t>(j / kChunk) * tile.c_block + j % kChunk;
        float* from = sums + r * width + j;
        // A program works on the tile, and what it leaves is copied.
        float* to = e.program ? from : tile.c + static_cast<ptrdiff_t>(r) * tile.c_row + block;
        const float* residual =
            tile.residual ? tile.residual + static_cast<ptrdiff_t>(r) * tile.residual_row + block
                          : nullptr;
        const float* b = bias ? bias + j : nullptr;
        if (j + kLanes <= tile.columns) {
          hn::StoreU(finish_vector(d, e, function, hn::LoadU(d, from), b, constant, residual), d,
                     to);
        } else {
          finish_tail(d, e, function, from, tile.columns - j, b, constant, residual, to);
        }
      }
    }
  });
  if (!e.program) return;
  // Two blocks that follow each other in memory are one run.
  const size_t run = tile.c_block == static_cast<ptrdiff_t>(kChunk) ? kPanelColumns : kChunk;
  for (size_t r = 0; r < tile.rows; ++r) {
    for (size_t j = 0; j < tile.columns; j += run) {
      const ptrdiff_t place = static_cast<ptrdiff_t>(r) * tile.c_row +
                              static_cast<ptrdiff_t>(j / kChunk) * tile.c_block;
      const size_t count = std::min(run, tile.columns - j);
      e.program(e.program_context, sums + r * width + j, count, tile.offset + place);
      std::memcpy(tile.c + place, sums + r * width + j, count * sizeof(float));
    }
  }
}

// Rows of the output are columns of the tile (nchw): the tile is transposed on its way out. Pixels
// are c_row apart: 1, or the stride of a transposed convolution.
void finish_columns(const Tile& tile, const float* sums, size_t width) {
  const Epilogue& e = *tile.epilogue;
  HWY_ALIGN float turned[kPanelColumns * kChunk];
  turn_tile(sums, width, tile.rows, tile.columns, turned);
  finish_turned(e, turned, tile.rows, tile.columns, e.bias ? e.bias + tile.column : nullptr,
                {tile.c, tile.residual, tile.offset, tile.c_row, tile.c_column, tile.c_block});
}

void finish(const Tile& tile, float* sums, size_t width) {
  if (tile.c_column == 1)
    finish_rows(tile, sums, width);
  else
    finish_columns(tile, sums, width);
}

void run_tile(const Tile& tile) {
  const Epilogue& e = *tile.epilogue;
  HWY_ALIGN float sums[(kMaxTileRows + 2) * kPanelColumns];  // finish_columns reads rows by four
  HWY_ALIGN float parts[kMostAside * kTileRows * kStripColumns];
  static_assert(kWideRows * kWideColumns <= kTileRows * kStripColumns);
  const size_t columns = (tile.columns + kChunk - 1) / kChunk * kChunk;
  const Strip strip{
      !tile.paused && tile.c_column == 1 && tile.columns % kChunk == 0 && is_direct(e),
      clip_range(e), tile.paused ? tile.paused : sums, columns, tile.parts ? tile.parts : parts};
  const size_t stride_kind = tile.a_row == 16 ? 0 : tile.a_row == 32 ? 1 : 2;
  const bool wide = columns > kPanelColumns;
  if constexpr (kWideRows > 0) {
    if (wide) kWideStrips[tile.rows - 1](tile, strip, 0);
  }
  for (size_t j = 0; !wide && j < columns; j += kStripColumns) {
    // Only AVX-512's strips are wider than a 16-column block.
    if constexpr (kStripColumns > kChunk) {
      if (columns - j <= kChunk) {
        kStrips<1>[stride_kind][tile.rows - 1](tile, strip, j);
        continue;
      }
    }
    kStrips<2>[stride_kind][tile.rows - 1](tile, strip, j);
  }
  if (!strip.direct && !tile.paused) finish(tile, sums, columns);
}

TileKernel get_tile_kernel() { return {kTileRows, kWideRows, &run_tile, &finish}; }

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(get_tile_kernel);
TileKernel tile_kernel() { return HWY_DYNAMIC_DISPATCH(get_tile_kernel)(); }
}  // namespace hologram::backends::dense
#endif
