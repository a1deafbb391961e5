#include "backends/cpu/dense/unit_gemm.h"

#include <algorithm>

#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {
constexpr size_t kSmallWork = 64 * 1024;     // units of multiply-adds
constexpr size_t kSmallMatrix = 128 * 1024;  // units that few rows read in some 5 us
constexpr size_t kBlockBytes = 1024 * 1024;  // of packed A, read again for every panel
constexpr size_t kMaxBlock = 8;              // tiles, whose sums are kept together
// The same of kernels that keep no sums: the more tiles, the fewer times B is read again.
constexpr size_t kVectorBlockBytes = 512 * 1024;
constexpr size_t kMaxVectorBlock = 32;
constexpr size_t kShortSum = 576;  // units
size_t padded_units(size_t units) { return align_up(units, kChunk); }

// Units that tiles add up before they put their sums down. A sum that fits the second cache beside
// what it is multiplied with is made in one go; a longer one in equal parts of about `depth`.
size_t pass_units(const UnitGemm& g, const UnitKernels& kernels) {
  const size_t units = std::max<size_t>(g.units, 1);
  if (kernels.depth == 0 || units <= (g.reused() ? kernels.whole : kernels.depth)) return units;
  const size_t passes = (units + kernels.depth - 1) / kernels.depth;
  return align_up((units + passes - 1) / passes, 2 * kChunk);
}

static_assert(kDigitSums == kMaxUnitRows * kPanelColumns);

// A tile whose sums wait to be finished.
struct Pending {
  size_t row = 0, rows = 0, column = 0, width = 0;
  uint32_t* sums = nullptr;
};
}  // namespace

size_t unit_gemm_scratch_bytes(size_t m, size_t units) {
  return (m * padded_units(units) + kUnitRowsBeyond * kChunk) * sizeof(uint32_t);
}

size_t unit_panel_units(size_t n, size_t units) { return align_up(n, kChunk) * units; }

void unit_gemm(const UnitGemm& g, std::byte* scratch, ThreadPool& pool) {
  if (g.m == 0 || g.n == 0) return;
  auto* a = reinterpret_cast<uint32_t*>(scratch);
  UnitKernels kernels = unit_kernels();
  UnitFunction multiply = g.tile;
  const bool few = kernels.few && g.tile == kernels.int8 && g.m <= kFewUnitRows;
  if (few) multiply = kernels.few;
  if (few || g.tile == kernels.shorts) {
    kernels.depth = 0;
    kernels.begin = kernels.end = nullptr;
  }
  if (g.tile == kernels.shorts) kernels.rows = kShortRows;
  const RowTiles tiles(g.m, kernels.rows);
  const size_t depth = padded_units(g.units);
  const size_t panels = (g.n + kPanelColumns - 1) / kPanelColumns;
  const bool small =
      g.m * g.n * g.units < kSmallWork || (g.m <= kFewUnitRows && g.n * g.units < kSmallMatrix);
  const unsigned threads = small ? 1 : 0;
  const size_t most = kernels.depth == 0 ? kMaxVectorBlock : kMaxBlock;
  const size_t block_bytes = kernels.depth == 0 ? kVectorBlockBytes : kBlockBytes;
  size_t block = std::max<size_t>(
      block_bytes / sizeof(uint32_t) / std::max<size_t>(depth, 1) / kernels.rows, 2);
  const size_t wanted = 4 * pool.size();
  // Where there are rows enough for all threads, a job packs its own just before it uses them, for
  // all panels, and the next job does so in the same place: it never leaves the near cache.
  const size_t near_blocks = (tiles.tiles + std::min(block, most) - 1) / std::min(block, most);
  const bool near = !g.image && (pool.size() == 1 || near_blocks >= wanted / 2);
  if (!near && (tiles.tiles + block - 1) / block * panels < wanted)
    block = std::max<size_t>(tiles.tiles * panels / wanted, 1);
  block = std::min(block, most);
  const size_t blocks = (tiles.tiles + block - 1) / block;
  if (kernels.depth == 0) block = (tiles.tiles + blocks - 1) / blocks;  // as even as they can be
  const auto pack = [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t)
      g.pack_a(tiles.begin(t), tiles.height(t), a + tiles.begin(t) * depth);
  };
  if (!g.image && !near) pool.parallel_for(tiles.tiles, 1, pack, Schedule::dynamic, threads);

  const size_t panel_end = unit_panel_units(g.n, g.units);
  const size_t pass = pass_units(g, kernels);
  const bool one_pass = pass >= g.units;
  // Of short sums even before they are stored: loads that come after a store wait for it where the
  // last 12 bits of their addresses agree.
  const bool within = one_pass && kernels.depth != 0 && g.units <= kShortSum;
  const auto run = [&](size_t begin, size_t end) {
    // Of the rows of the job's first block; other jobs of this call use the same place.
    const size_t place = near ? tiles.begin(begin / panels * block) * depth : 0;
    alignas(64) uint32_t sums[kMaxBlock * 2 * kDigitSums];
    const size_t tile_sums =
        g.tile == kernels.digits ? 2 * kDigitSums : kernels.rows * kPanelColumns;
    // A tile is finished, and the next one's rows are packed, when the products that follow it in
    // time were asked for: what a CPU does with vectors then runs beside them, not after them.
    Pending pending;
    size_t turn = 0;
    const auto settle = [&] {
      if (pending.rows != 0)
        g.finish(pending.row, pending.rows, pending.column, pending.sums, pending.width);
      pending.rows = 0;
    };
    if (kernels.begin) kernels.begin();
    for (size_t job = begin; job < end; ++job) {
      const size_t column = job % panels * kPanelColumns, first = job / panels * block;
      const size_t last = std::min(first + block, tiles.tiles);
      const size_t width = std::min<size_t>(kPanelColumns, align_up(g.n, kChunk) - column);
      // From a row of the packed A to where it lies.
      const size_t shift = near ? tiles.begin(first) * depth - place : 0;
      const bool packs = near && job % panels == 0;
      const auto pack_tile = [&](size_t t) {
        g.pack_a(tiles.begin(t), tiles.height(t), a + tiles.begin(t) * depth - shift);
      };
      if (packs) pack_tile(first);
      if (!one_pass) settle();
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
          uint32_t* const to = sums + (!one_pass ? t - first : within ? 0 : turn++ % 2) * tile_sums;
          const bool finishes = unit + pass >= g.units;
          const auto beside = [&] {
            if (finishes) settle();
            if (packs && unit == 0 && t + 1 < last) pack_tile(t + 1);
          };
          const FunctionRef<void()> meanwhile(beside);
          multiply(
              {.a = g.image ? g.image + row * g.image_row : a + row * depth - shift + unit * rows,
               .steps = g.image ? g.steps + unit / g.step_units : nullptr,
               .a_low = g.image_low,
               .a_row = g.image_row,
               .b = b,
               .units = units,
               .rows = rows,
               .width = width,
               .sums = to,
               .ahead = b + units * width + (t - first) * ahead,
               .ahead_units = ahead,
               .add = unit > 0,
               .meanwhile = within ? &meanwhile : nullptr});
          if (!within) beside();
          if (finishes) pending = {row, rows, column, width, to};
        }
      }
    }
    settle();
    if (kernels.end) kernels.end();
  };
  pool.parallel_for(blocks * panels, near ? panels : 1, run, Schedule::dynamic, threads);
}

}  // namespace hologram::backends::dense
