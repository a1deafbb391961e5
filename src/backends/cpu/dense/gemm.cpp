#include "backends/cpu/dense/gemm.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/ordered.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/transpose.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

constexpr size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

// Below this many multiply-adds waking a second thread costs more than it saves.
constexpr size_t kSmallWork = 512 * 1024;
// A block of packed A is read again for every panel: it should stay in L2 beside a panel. Where
// rows are long it holds a part of each, and sums are made in passes: blocks of fewer rows would
// have all of B read again for each.
constexpr size_t kBlockBytes = 512 * 1024;
constexpr size_t kBlockRows = 256;

// Of fewer rows a wide tile has too few sums in flight.
constexpr size_t kFewRows = 3;
// Bytes of B from which one narrow tile of all rows beats two or three wide ones, each of which
// reads B again; and from which it beats a single wide one: such a B comes from memory, where a
// narrow tile asks for it long before.
constexpr size_t kBeyondSecond = size_t{1} << 20, kBeyondAll = size_t{8} << 20;
// Rows of B from what is read to what is asked for: 8 KB.
constexpr size_t kFarRows = 64;

size_t padded_depth(size_t k) { return align_up(k, kChunk); }

// B can be read where it lies when there are too few rows to pay for packing; a last panel of
// incomplete columns is packed even then.
bool b_in_place(const Gemm& g) { return g.m <= 4 && !g.b_transposed; }

// One tile of A: packed[chunk][row][16].
void pack_a_tile(const Gemm& g, size_t row, size_t height, float* packed) {
  for (size_t k = 0; k < g.k; k += kChunk, packed += height * kChunk) {
    const size_t count = std::min(kChunk, g.k - k);
    if (g.a_transposed) {
      transpose_block(count, height, g.a + k * g.lda + row, g.lda, packed, kChunk);
    } else if (count == kChunk) {
      for (size_t r = 0; r < height; ++r)
        std::memcpy(packed + r * kChunk, g.a + (row + r) * g.lda + k, kChunk * sizeof(float));
    } else {
      for (size_t r = 0; r < height; ++r)
        std::memcpy(packed + r * kChunk, g.a + (row + r) * g.lda + k, count * sizeof(float));
    }
  }
}

size_t panel_width(size_t n, size_t panel) {
  return std::min<size_t>(kPanelColumns, align_up(n, kChunk) - panel * kPanelColumns);
}

void pack_b_panel(size_t k, size_t n, const float* b, size_t ldb, bool transposed, size_t panel,
                  float* packed) {
  const size_t column = panel * kPanelColumns, width = panel_width(n, panel);
  const size_t columns = std::min(width, n - column);
  if (transposed) {
    transpose_block(columns, k, b + column * ldb, ldb, packed, width);
  } else {
    for (size_t i = 0; i < k; ++i)
      std::memcpy(packed + i * width, b + i * ldb + column, columns * sizeof(float));
  }
  if (columns < width)
    for (size_t i = 0; i < k; ++i)
      std::fill(packed + i * width + columns, packed + (i + 1) * width, 0.0f);
}

// What of B has to be packed before the product: everything, the last panel, or nothing.
struct Packing {
  size_t first, end;  // panels
  size_t bytes(size_t k, size_t n) const {
    if (first == end) return 0;
    return align_up((align_up(n, kChunk) - first * kPanelColumns) * k * sizeof(float), kAlignment);
  }
};
Packing b_packing(const Gemm& g) {
  const size_t panels = divide_up(g.n, kPanelColumns);
  if (g.packed_b) return {panels, panels};
  if (!b_in_place(g)) return {0, panels};
  return {g.n / kPanelColumns, panels};
}

// Whether tiles take 64 columns.
bool is_wide(const Gemm& g) {
  const TileKernel kernel = tile_kernel();
  if (g.packed_b && g.m <= kernel.rows &&
      packed_b_bytes(g.k, g.n) >= (g.m > kernel.wide_rows ? kBeyondSecond : kBeyondAll))
    return false;
  return kernel.wide_rows != 0 && g.m >= kFewRows && g.n >= kWideColumns &&
         (g.packed_b || b_packing(g).first == 0);
}

// A row-major A of one row already has the packed form. Wide tiles read few rows at once, and those
// of a row-major A where they lie as fast as packed ones.
bool a_in_place(const Gemm& g) {
  return g.m == 1 ? !g.a_transposed || g.lda == 1 : !g.a_transposed && is_wide(g);
}

size_t packed_a_bytes(const Gemm& g) {
  return a_in_place(g) ? 0 : align_up(g.m * padded_depth(g.k) * sizeof(float), kAlignment);
}

// Chunks of k that a pass adds up.
size_t pass_chunks(const Gemm& g) {
  const size_t chunks = padded_depth(g.k) / kChunk;
  if (g.ordered) return chunks;
  const size_t most =
      kBlockBytes / (std::clamp<size_t>(g.m, 1, kBlockRows) * kChunk * sizeof(float));
  const size_t passes = divide_up(chunks, most);
  return divide_up(chunks, std::max<size_t>(passes, 1));
}

// Sums on their way from one pass to the next.
size_t paused_bytes(const Gemm& g) {
  const bool one_pass = pass_chunks(g) * kChunk >= g.k;
  return one_pass ? 0 : align_up(g.m * align_up(g.n, kChunk) * sizeof(float), kAlignment);
}

// The columns that tiles take at once: pairs of panels where tiles are wide, then single ones.
struct Strides {
  size_t pairs, panels;
  size_t count() const { return panels - pairs; }
  size_t first(size_t i) const { return i < pairs ? 2 * i : i + pairs; }
};

}  // namespace

size_t packed_b_bytes(size_t k, size_t n) { return k * align_up(n, kChunk) * sizeof(float); }

void pack_b(size_t k, size_t n, const float* b, size_t ldb, bool transposed, float* packed,
            ThreadPool& pool) {
  const auto run = [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p)
      pack_b_panel(k, n, b, ldb, transposed, p, packed + p * kPanelColumns * k);
  };
  pool.parallel_for(divide_up(n, kPanelColumns), 1, run, Schedule::fixed, k * n < 32768 ? 1 : 0);
}

size_t gemm_scratch_bytes(const Gemm& g) {
  return packed_a_bytes(g) + b_packing(g).bytes(g.k, g.n) + paused_bytes(g);
}

void gemm(const Gemm& g, std::byte* scratch, ThreadPool& pool) {
  if (g.m == 0 || g.n == 0) return;
  if (g.ordered && g.m == 1) return row_by_fours(g.n, g.k, g.a, g.b, g.ldb, g.c);
  const TileKernel kernel = tile_kernel();
  const Packing packing = b_packing(g);
  const bool wide = is_wide(g);
  const size_t most_rows = wide ? kernel.wide_rows : kernel.rows;
  const RowTiles tiles(g.m, most_rows);
  const size_t panels = divide_up(g.n, kPanelColumns), depth = padded_depth(g.k);
  const Strides strides{wide ? g.n / kWideColumns : 0, panels};
  // Few rows wait for the matrix to be read, not for products.
  const size_t small = g.m <= 2 ? kSmallWork / 4 : kSmallWork;
  const unsigned threads = g.m * g.n * g.k < small ? 1 : 0;

  float* a_packed = a_in_place(g) ? nullptr : reinterpret_cast<float*>(scratch);
  float* b_packed = reinterpret_cast<float*>(scratch + packed_a_bytes(g));
  float* paused = reinterpret_cast<float*>(scratch + packed_a_bytes(g) + packing.bytes(g.k, g.n));
  if (a_packed || packing.first < packing.end) {
    const size_t a_jobs = a_packed ? tiles.tiles : 0;
    const auto pack = [&](size_t begin, size_t end) {
      for (size_t job = begin; job < end; ++job) {
        if (job < a_jobs) {
          pack_a_tile(g, tiles.begin(job), tiles.height(job), a_packed + tiles.begin(job) * depth);
        } else {
          const size_t panel = packing.first + job - a_jobs;
          pack_b_panel(g.k, g.n, g.b, g.ldb, g.b_transposed, panel,
                       b_packed + (panel - packing.first) * kPanelColumns * g.k);
        }
      }
    };
    pool.parallel_for(a_jobs + packing.end - packing.first, 1, pack, Schedule::dynamic, threads);
  }

  // Blocks of rows, then panels, then the tiles of a block. With few panels the blocks are what is
  // dealt to the threads, so there should be several.
  const size_t pass = pass_chunks(g), chunks = depth / kChunk;
  size_t block =
      std::max<size_t>(kBlockBytes / ((pass + 1) * kChunk) / sizeof(float) / most_rows, 2);
  const size_t wanted = pool.size() == 1 ? 1 : 4 * pool.size();
  if (divide_up(tiles.tiles, block) * strides.count() < wanted)
    block = std::max<size_t>(tiles.tiles * strides.count() / wanted, 1);
  const size_t blocks = divide_up(tiles.tiles, block);  // of nearly as many tiles each
  static constexpr ptrdiff_t kNoOffset = 0;

  const auto run = [&](size_t begin, size_t end, size_t chunk, size_t past_chunk) {
    for (size_t job = begin; job < end; ++job) {
      const size_t stride = job % strides.count(), panel = strides.first(stride);
      const size_t column = panel * kPanelColumns;
      const size_t at = job / strides.count();
      const size_t first = tiles.tiles * at / blocks, past = tiles.tiles * (at + 1) / blocks;
      const size_t columns =
          std::min(stride < strides.pairs ? kWideColumns : kPanelColumns, g.n - column);
      const size_t width = align_up(columns, kChunk), k = chunk * kChunk;
      // The next columns come from memory while these are multiplied.
      const bool brings = g.packed_b && stride + 1 < strides.count() && past - first > 1;
      const size_t lines = brings ? lines_ahead(kPanelColumns, past - first) : 0;
      for (size_t t = first; t < past; ++t) {
        const size_t row = tiles.begin(t);
        Tile tile;
        tile.rows = tiles.height(t);
        tile.a = a_packed ? a_packed + row * depth + k * tile.rows : g.a + row * g.lda + k;
        // One row has no stride, but strips know that of packed ones when they are compiled.
        tile.a_row = static_cast<ptrdiff_t>(a_packed || g.m == 1 ? kChunk : g.lda);
        tile.a_chunk = static_cast<ptrdiff_t>(a_packed ? tile.rows * kChunk : kChunk);
        tile.taps = &kNoOffset;
        tile.chunks = past_chunk - chunk;
        tile.last = past_chunk == chunks ? g.k - (depth - kChunk) : kChunk;
        if (g.ordered) tile.part = ordered_part(g.n, g.k) / kChunk;
        if (g.packed_b) {
          tile.b = g.packed_b + column * g.k;
          tile.b_stride = panel_width(g.n, panel);
        } else if (panel >= packing.first) {
          tile.b = b_packed + (panel - packing.first) * kPanelColumns * g.k;
          tile.b_stride = panel_width(g.n, panel);
        } else {
          tile.b = g.b + column;
          tile.b_stride = g.ldb;
        }
        tile.b += k * tile.b_stride;
        tile.b_panel = kPanelColumns * g.k;
        if (brings) {
          tile.ahead_lines = lines;
          tile.ahead = tile.b + (stride < strides.pairs ? 2 : 1) * tile.b_panel +
                       (t - first) * lines * tile.chunks * kChunk;
        }
        if (g.packed_b && tiles.tiles == 1) tile.b_far = kFarRows * tile.b_stride;
        tile.columns = columns;
        if (pass < chunks) {
          float* sums = paused + column * g.m + row * width;
          tile.start = chunk == 0 ? nullptr : sums;
          tile.start_row = chunk == 0 ? 0 : static_cast<ptrdiff_t>(width);
          tile.paused = past_chunk < chunks ? sums : nullptr;
        }
        tile.epilogue = &g.epilogue;
        tile.row = row;
        tile.column = column;
        tile.lie_in(g.c, g.ldc);
        kernel.run(tile);
      }
    }
  };
  size_t chunk = 0;
  do {
    const size_t past = std::min(chunk + pass, chunks);
    const auto body = [&](size_t begin, size_t end) { run(begin, end, chunk, past); };
    pool.parallel_for(blocks * strides.count(), 1, body, Schedule::dynamic, threads);
    chunk = past;
  } while (chunk < chunks);
}

}  // namespace hologram::backends::dense
