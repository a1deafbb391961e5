#include "backends/cpu/dense/unit_gemm.h"

#include <algorithm>

#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {
constexpr size_t kSmallWork = 64 * 1024;    // units of multiply-adds
constexpr size_t kBlockBytes = 512 * 1024;  // of packed A, read again for every panel
constexpr size_t kMaxBlock = 8;             // tiles, whose sums are kept together
size_t padded_units(size_t units) { return align_up(units, kChunk); }
}  // namespace

size_t unit_gemm_scratch_bytes(size_t m, size_t units) {
  return (m * padded_units(units) + kUnitRowsBeyond * kChunk) * sizeof(uint32_t);
}

size_t unit_panel_units(size_t n, size_t units) { return align_up(n, kChunk) * units; }

void unit_gemm(const UnitGemm& g, std::byte* scratch, ThreadPool& pool) {
  if (g.m == 0 || g.n == 0) return;
  auto* a = reinterpret_cast<uint32_t*>(scratch);
  const UnitKernels kernels = unit_kernels();
  const RowTiles tiles(g.m, kernels.rows);
  const size_t depth = padded_units(g.units);
  const size_t panels = (g.n + kPanelColumns - 1) / kPanelColumns;
  const unsigned threads = g.m * g.n * g.units < kSmallWork ? 1 : 0;
  size_t block = std::max<size_t>(
      kBlockBytes / sizeof(uint32_t) / std::max<size_t>(depth, 1) / kernels.rows, 2);
  const size_t wanted = 4 * pool.size();
  // Where there are rows enough for all threads, a job packs its own just before it uses them, for
  // all panels, and the next job does so in the same place: it never leaves the near cache.
  const size_t near_blocks =
      (tiles.tiles + std::min(block, kMaxBlock) - 1) / std::min(block, kMaxBlock);
  const bool near = !g.image && near_blocks >= wanted;
  if (!near && (tiles.tiles + block - 1) / block * panels < wanted)
    block = std::max<size_t>(tiles.tiles * panels / wanted, 1);
  block = std::min(block, kMaxBlock);
  const size_t blocks = (tiles.tiles + block - 1) / block;
  const auto pack = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t)
      g.pack_a(tiles.begin(t), tiles.height(t), a + tiles.begin(t) * depth);
  };
  if (!g.image && !near) pool.parallel_for(tiles.tiles, 1, pack, Schedule::fixed, threads);

  const size_t panel_end = unit_panel_units(g.n, g.units);
  const size_t pass = kernels.depth ? kernels.depth : std::max<size_t>(g.units, 1);
  const auto run = [&](size_t begin, size_t end) {
    // Of the rows of the job's first block; other jobs of this call use the same place.
    const size_t place = near ? tiles.begin(begin / panels * block) * depth : 0;
    alignas(64) uint32_t sums[kMaxBlock * kMaxUnitRows * kPanelColumns];
    if (kernels.begin) kernels.begin();
    for (size_t job = begin; job < end; ++job) {
      const size_t column = job % panels * kPanelColumns, first = job / panels * block;
      const size_t last = std::min(first + block, tiles.tiles);
      const size_t width = std::min(kPanelColumns, align_up(g.n, kChunk) - column);
      const size_t tile_sums = kernels.rows * width;
      // From a row of the packed A to where it lies.
      const size_t shift = near ? tiles.begin(first) * depth - place : 0;
      if (near && job % panels == 0)
        for (size_t t = first; t < last; ++t)
          g.pack_a(tiles.begin(t), tiles.height(t), a + tiles.begin(t) * depth - shift);
      // The panel is read a cacheful at a time, each by all tiles of the block.
      for (size_t unit = 0; unit == 0 || unit < g.units; unit += pass) {
        const size_t units = std::min(pass, g.units - unit);
        const uint32_t* b = g.packed_b + column * g.units + unit * width;
        // What follows, by this pass or by the next panel; each tile asks for its part.
        const size_t ahead =
            std::min(units * width,
                     panel_end - static_cast<size_t>(b - g.packed_b) - units * width) /
            (last - first);
        for (size_t t = first; t < last; ++t) {
          const size_t row = tiles.begin(t), rows = tiles.height(t);
          g.tile(
              {.a = g.image ? g.image + row * g.image_row : a + row * depth - shift + unit * rows,
               .steps = g.image ? g.steps + unit / g.step_units : nullptr,
               .a_low = g.image_low,
               .a_row = g.image_row,
               .b = b,
               .units = units,
               .rows = rows,
               .width = width,
               .sums = sums + (t - first) * tile_sums,
               .add = unit > 0,
               .ahead = b + units * width + (t - first) * ahead,
               .ahead_units = ahead});
          if (unit + pass >= g.units)
            g.finish(row, rows, column, sums + (t - first) * tile_sums, width);
        }
      }
    }
    if (kernels.end) kernels.end();
  };
  const size_t grain = near ? panels * std::max<size_t>(blocks / wanted, 1) : 1;
  pool.parallel_for(blocks * panels, grain, run, Schedule::dynamic, threads);
}

}  // namespace hologram::backends::dense
