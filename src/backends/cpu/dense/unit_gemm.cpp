#include "backends/cpu/dense/unit_gemm.h"

#include <algorithm>

#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {
constexpr size_t kSmallWork = 64 * 1024;    // units of multiply-adds
constexpr size_t kBlockBytes = 512 * 1024;  // of packed A, read again for every panel
size_t padded_units(size_t units) { return align_up(units, kChunk); }
}  // namespace

size_t unit_gemm_scratch_bytes(size_t m, size_t units) {
  return m * padded_units(units) * sizeof(uint32_t);
}

size_t unit_panel_units(size_t n, size_t units) { return align_up(n, kChunk) * units; }

void unit_gemm(const UnitGemm& g, std::byte* scratch, ThreadPool& pool) {
  if (g.m == 0 || g.n == 0) return;
  auto* a = reinterpret_cast<uint32_t*>(scratch);
  const RowTiles tiles(g.m, unit_kernels().rows);
  const size_t depth = padded_units(g.units);
  const size_t panels = (g.n + kPanelColumns - 1) / kPanelColumns;
  const unsigned threads = g.m * g.n * g.units < kSmallWork ? 1 : 0;
  const auto pack = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t)
      g.pack_a(tiles.begin(t), tiles.height(t), a + tiles.begin(t) * depth);
  };
  pool.parallel_for(tiles.tiles, 1, pack, Schedule::fixed, threads);

  size_t block = std::max<size_t>(
      kBlockBytes / sizeof(uint32_t) / std::max<size_t>(depth, 1) / kMaxTileRows, 2);
  const size_t wanted = 4 * pool.size();
  if ((tiles.tiles + block - 1) / block * panels < wanted)
    block = std::max<size_t>(tiles.tiles * panels / wanted, 1);
  const size_t blocks = (tiles.tiles + block - 1) / block;
  const auto run = [&](size_t begin, size_t end) {
    alignas(64) uint32_t sums[kMaxTileRows * kPanelColumns];
    for (size_t job = begin; job < end; ++job) {
      const size_t column = job % panels * kPanelColumns, first = job / panels * block;
      const size_t width = std::min(kPanelColumns, align_up(g.n, kChunk) - column);
      for (size_t t = first; t < std::min(first + block, tiles.tiles); ++t) {
        const size_t row = tiles.begin(t), rows = tiles.height(t);
        g.tile({.a = a + row * depth,
                .b = g.packed_b + column * g.units,
                .units = g.units,
                .rows = rows,
                .width = width,
                .sums = sums});
        g.finish(row, rows, column, sums, width);
      }
    }
  };
  pool.parallel_for(blocks * panels, 1, run, Schedule::dynamic, threads);
}

}  // namespace hologram::backends::dense
