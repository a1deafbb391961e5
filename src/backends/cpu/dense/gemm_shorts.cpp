#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/dense/gemm_narrow.h"
#include "backends/cpu/dense/short_values.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_gemm.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

size_t units_of(size_t k) { return align_up(k, kShortStep) / 2; }
size_t head_bytes(size_t n) { return align_up(n, kPanelColumns) * sizeof(float); }
size_t row_scales_at(const GemmShorts& g) {
  return align_up(unit_gemm_scratch_bytes(g.m, units_of(g.k)), kAlignment);
}

}  // namespace

size_t packed_b_shorts_bytes(size_t k, size_t n) {
  return head_bytes(n) + unit_panel_units(n, units_of(k)) * sizeof(uint32_t);
}

void pack_b_shorts(size_t k, size_t n, const float* b, size_t ldb, bool transposed,
                   std::byte* packed) {
  std::memset(packed, 0, packed_b_shorts_bytes(k, n));
  auto* scales = reinterpret_cast<float*>(packed);
  auto* panels = reinterpret_cast<int16_t*>(packed + head_bytes(n));
  const size_t row_step = transposed ? 1 : ldb, column_step = transposed ? ldb : 1;
  std::vector<float> column(k);
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < k; ++i) column[i] = b[j * column_step + i * row_step];
    const ShortScale scale(
        detail::careful_unit({.from = column.data(), .block = kShortRun, .pixels = 1, .count = k}));
    scales[j] = scale.back;
    if (scale.factor == 0) continue;
    const size_t first = j / kPanelColumns * kPanelColumns;
    const size_t width = std::min<size_t>(kPanelColumns, align_up(n, kChunk) - first);
    int16_t* to = panels + first * 2 * units_of(k) + (j - first) * 2;
    for (size_t i = 0; i < k; ++i)
      to[i / 2 * 2 * width + i % 2] =
          static_cast<int16_t>(std::nearbyint(column[i] * scale.factor));
  }
}

size_t gemm_shorts_scratch_bytes(const GemmShorts& g) {
  return row_scales_at(g) + g.m * sizeof(float);
}

void gemm_shorts(const GemmShorts& g, std::byte* scratch, ThreadPool& pool) {
  auto* row_scales = reinterpret_cast<float*>(scratch + row_scales_at(g));
  const auto* scales = reinterpret_cast<const float*>(g.packed_b);
  const ShortFunctions shorts = short_functions();
  const auto pack = [&](size_t row, size_t height, uint32_t* packed) {
    float units[kMaxUnitRows];
    ShortPixels rows{.from = g.a + row * g.lda,
                     .block = kShortRun,
                     .step = g.lda,
                     .pixels = height,
                     .count = g.k};
    shorts.units(rows, units);
    rows.pixels = 1;
    for (size_t r = 0; r < height; ++r, rows.from += g.lda, packed += kChunk) {
      const ShortScale own(units[r]);
      row_scales[row + r] = own.back;
      shorts.runs({.values = rows,
                   .runs = units_of(g.k) / 8,
                   .factors = &own.factor,
                   .to = reinterpret_cast<int16_t*>(packed),
                   .chunk = height * kChunk * sizeof(uint32_t)});
    }
  };
  const TileKernel kernel = tile_kernel();
  const Epilogue epilogue = closely(g.epilogue);
  const auto finish = [&](size_t row, size_t rows, size_t column, void* sums, size_t width) {
    auto* values = static_cast<float*>(sums);
    shorts.scale(values, rows, width, row_scales + row, 1, scales + column);
    Tile tile;
    tile.rows = rows;
    tile.columns = std::min(width, g.n - column);
    tile.row = row;
    tile.column = column;
    tile.epilogue = &epilogue;
    tile.lie_in(g.c, g.ldc);
    kernel.finish(tile, values, width);
  };
  unit_gemm({.m = g.m,
             .n = g.n,
             .units = units_of(g.k),
             .packed_b = reinterpret_cast<const uint32_t*>(g.packed_b + head_bytes(g.n)),
             .tile = unit_kernels().shorts,
             .pack_a = pack,
             .finish = finish},
            scratch, pool);
}

}  // namespace hologram::backends::dense
