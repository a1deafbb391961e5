#include "backends/cpu/dense/exact_tile.h"

#include <algorithm>

#include "support/aligned.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/exact_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/direct_epilogue.h"
#include "backends/cpu/dense/wide-inl.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using wide::kLanes;
constexpr size_t kRows = 6;
// Of sums in registers: 6 x 4 of the 32 of AVX-512, 6 x 2 of 16.
constexpr size_t kVectors = HWY_MAX_BYTES == 64 ? 4 : 2;
constexpr size_t kTerms = 8 * kChunk;  // at a time: what is multiplied stays in L1

// Terms that are multiplied next, of every row, and the sums so far. Rows that the tile does not
// have are zeros.
struct Block {
  HWY_ALIGN double a[kRows][kTerms];
  HWY_ALIGN double sums[kRows][kPanelColumns];
  size_t terms = 0;
  const double* b;  // of the first term
};

// What becomes of the sums.
struct End {
  bool adds;       // bias and residual, in f64
  bool direct;     // all else is a clip: results go to their places
  ClipRange clip;  // of those
  HWY_ALIGN float results[(kRows + 2) * kPanelColumns];  // others; finish reads rows by four
};

ptrdiff_t place(const Tile& tile, size_t column) {
  return static_cast<ptrdiff_t>(column / kChunk) * tile.c_block +
         static_cast<ptrdiff_t>(column % kChunk) * tile.c_column;
}

// Sums begin with what they begin with, bias and residual.
void begin(const Tile& tile, bool adds, size_t columns, Block& block) {
  HWY_ALIGN double first[kPanelColumns] = {}, more[kPanelColumns];
  if (tile.start) wide::widen(tile.start, columns, first);
  if (adds && tile.epilogue->bias) {
    wide::widen(tile.epilogue->bias + tile.column, tile.columns, more);
    for (size_t j = 0; j < tile.columns; ++j) first[j] += more[j];
  }
  for (size_t r = 0; r < kRows; ++r) {
    std::copy_n(first, columns, block.sums[r]);
    if (!adds || !tile.residual || r >= tile.rows) continue;
    const float* residual = tile.residual + static_cast<ptrdiff_t>(r) * tile.residual_row;
    for (size_t j = 0; j < tile.columns; j += kChunk) {
      const size_t count = std::min(kChunk, tile.columns - j);
      if (tile.c_column == 1) {
        wide::widen(residual + place(tile, j), count, more);
      } else {
        for (size_t i = 0; i < count; ++i)
          more[i] = static_cast<double>(residual[place(tile, j + i)]);
      }
      for (size_t i = 0; i < count; ++i) block.sums[r][j + i] += more[i];
    }
  }
}

// kCount vectors of columns; after the last terms where there is an end.
template <size_t kCount>
void run_strip(const Tile& tile, Block& block, size_t column, End* end) {
  wide::V sums[kRows][kCount];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (size_t v = 0; v < kCount; ++v)
      sums[r][v] = wide::load(block.sums[r] + column + v * kLanes);
  const double* b = block.b + column;
  for (size_t k = 0; k < block.terms; ++k, b += tile.b_stride) {
    wide::V bs[kCount];
#pragma GCC unroll 4
    for (size_t v = 0; v < kCount; ++v) bs[v] = wide::load(b + v * kLanes);
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      const wide::V as = wide::set(block.a[r][k]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kCount; ++v) sums[r][v] = wide::mul_add(as, bs[v], sums[r][v]);
    }
  }
  if (!end) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (size_t v = 0; v < kCount; ++v)
        wide::store(sums[r][v], block.sums[r] + column + v * kLanes);
    return;
  }
  float* to = end->direct ? tile.c + place(tile, column) : end->results + column;
  const ptrdiff_t row =
      end->direct ? tile.c_row : static_cast<ptrdiff_t>(align_up(tile.columns, kChunk));
  // Vectors of a strip may be of two blocks of channels.
  const ptrdiff_t next = end->direct ? tile.c_block : static_cast<ptrdiff_t>(kChunk);
  const auto [clips, low, high] = end->clip;
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r, to += row) {
    if (r >= tile.rows) break;
#pragma GCC unroll 4
    for (size_t v = 0; v < kCount; ++v)
      wide::store_rounded(
          sums[r][v], clips, low, high,
          to + static_cast<ptrdiff_t>(v * kLanes / kChunk) * next + v * kLanes % kChunk);
  }
}

void run_exact_tile(const Tile& tile) {
  const Epilogue& e = *tile.epilogue;
  End end;
  end.adds = e.alpha == 1.0f && (!tile.residual || (e.residual_scale == 1.0f && !e.residual_last));
  end.direct = is_direct(e) && tile.c_column == 1 && tile.columns % kChunk == 0;
  end.clip = clip_range(e);
  end.clip.clips &= end.direct;
  const size_t columns = align_up(tile.columns, kChunk);
  Block block;
  block.b = tile.exact_b;
  begin(tile, end.adds, columns, block);
  for (size_t r = tile.rows; r < kRows; ++r) std::fill_n(block.a[r], kTerms, 0.0);
  const auto multiply = [&](End* last) {
    constexpr size_t kStrip = kVectors * kLanes;
    size_t j = 0;
    for (; j + kStrip <= columns; j += kStrip) run_strip<kVectors>(tile, block, j, last);
    if constexpr (kStrip > kChunk)
      if (j < columns) run_strip<kChunk / kLanes>(tile, block, j, last);
    block.b += block.terms * tile.b_stride;
    block.terms = 0;
  };
  for (size_t t = 0; t < tile.tap_count; ++t) {
    const float* a = tile.a + tile.taps[t];
    for (size_t c = 0; c < tile.chunks; ++c, a += tile.a_chunk) {
      const size_t count = c + 1 == tile.chunks ? tile.last : kChunk;
      if (block.terms + count > kTerms) multiply(nullptr);
      for (size_t r = 0; r < tile.rows; ++r)
        wide::widen(a + static_cast<ptrdiff_t>(r) * tile.a_row, count, block.a[r] + block.terms);
      block.terms += count;
    }
  }
  multiply(&end);
  if (end.direct) return;
  Epilogue rest = e;
  Tile others = tile;
  others.epilogue = &rest;
  if (end.adds) {
    rest.bias = rest.residual = nullptr;
    others.residual = nullptr;
  }
  tile_kernel().finish(others, end.results, columns);
}

TileKernel get_exact_tile_kernel() { return {kRows, 0, &run_exact_tile, tile_kernel().finish}; }

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(get_exact_tile_kernel);
TileKernel exact_tile_kernel() { return HWY_DYNAMIC_DISPATCH(get_exact_tile_kernel)(); }
}  // namespace hologram::backends::dense
#endif
