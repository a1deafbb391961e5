// Tile: the heart of every product and convolution: `rows` x (up to 64) results kept in registers
// over the whole sum, then finished by the epilogue and stored.
//
// The sum runs over taps, 16-value chunks and the values of a chunk:
//   k = 0; for each tap t, chunk c, i < 16 (i < last in the last chunk):
//     result(row, column) += a[taps[t] + row * a_row + c * a_chunk + i] * b[k++ * b_stride +
//     column]
// A product is one tap over packed rows; a k x k convolution is a tap a kernel position over the
// channel-blocked input. A result's bits do not depend on the other rows and columns of its tile.
//
// Plain data and one function; called from any thread.
#pragma once

#include <cstddef>

#include "backends/cpu/dense/epilogue.h"

namespace hologram::backends::dense {

inline constexpr size_t kChunk = 16;         // values of A between two steps of a_chunk
inline constexpr size_t kPanelColumns = 32;  // columns of a panel of B
inline constexpr size_t kMaxTileRows = 14;
inline constexpr size_t kWideColumns = 2 * kPanelColumns;  // of a wide tile: two panels
inline constexpr size_t kWideTileRows = 6;
inline constexpr size_t kMostAside = 2;

struct Tile {
  const float* a = nullptr;
  ptrdiff_t a_row = 0, a_chunk = 0;
  const ptrdiff_t* taps = nullptr;
  size_t tap_count = 1, chunks = 0, last = kChunk;
  // Chunks after which a partial sum is put aside and a new one begun; 0: one sum of everything.
  // The error of a sum grows with its length.
  size_t part = 0;
  // Sums that parts are added to in turn, 1 or kMostAside: that of many parts is long, too.
  size_t aside = 1;
  // What sums begin with, or null: a value a column, up to a multiple of 16, and a row of them
  // every start_row floats; 0: the same for all rows.
  const float* start = nullptr;
  ptrdiff_t start_row = 0;
  // Where sums are left as they are, [rows][columns, up to a multiple of 16], for another tile to
  // start with; null: they are finished. Of sums in parts, `parts` holds what is put aside
  // meanwhile, aside * rows * columns floats, and `before` counts the chunks of earlier tiles.
  float *paused = nullptr, *parts = nullptr;
  size_t before = 0;
  const float* b = nullptr;
  const double* exact_b = nullptr;  // in the place of b, of exact tiles (exact_tile.h)
  size_t b_stride = kPanelColumns;
  // Of a wide tile: floats from a panel to the next. Both have 32 columns.
  size_t b_panel = 0;
  // columns <= 32, or 64 where the kernel has wide tiles; b has a multiple of 16 of them
  size_t rows = 0, columns = 0;
  // What later tiles read of B: so many lines of 64 bytes are brought near with each chunk, of a
  // wide tile from two panels.
  const float* ahead = nullptr;
  size_t ahead_lines = 0;
  // Of a tile that is the only one to read B, of one row or of rows 16 apart: floats from what is
  // read to what is brought near; 0: nothing is.
  size_t b_far = 0;

  // Result (row, column) is c[row * c_row + column / 16 * c_block + column % 16 * c_column], where
  // c_column is 1, or c_row is small (nchw, whose pixels are rows). The residual lies the same way,
  // with a row stride of its own.
  float* c = nullptr;
  ptrdiff_t c_row = 0, c_block = kChunk, c_column = 1;
  const float* residual = nullptr;
  ptrdiff_t residual_row = 0;

  const Epilogue* epilogue = nullptr;
  size_t row = 0, column = 0;  // of the first result, to index the bias
  size_t offset = 0;           // of c from the output's start, for the pointwise program

  // Where c and the epilogue's residual lie in a plain result, of rows `stride` floats apart.
  void lie_in(float* result, size_t stride) {
    offset = row * stride + column;
    c = result + offset;
    c_row = static_cast<ptrdiff_t>(stride);
    if (!epilogue->residual) return;
    const size_t apart = epilogue->residual_stride ? epilogue->residual_stride : stride;
    residual = epilogue->residual + row * apart + column;
    residual_row = static_cast<ptrdiff_t>(apart);
  }
};

struct TileKernel {
  size_t rows;  // the most a tile may have; at most kMaxTileRows
  // The most that a tile of 64 columns may have, or 0: there is none. Wide tiles load less for a
  // product, which pays where loads are what a core is short of.
  size_t wide_rows;
  void (*run)(const Tile& tile);
  // The epilogue alone: `sums` has tile.rows rows, `width` floats apart, of results that another
  // kernel computed; width is 16 or 32 and at least tile.columns. Where c_column is not 1 there is
  // memory for rows up to a multiple of four. The sums are rewritten.
  void (*finish)(const Tile& tile, float* sums, size_t width);
};

// For this CPU.
TileKernel tile_kernel();

// Lines of a chunk that each of `tiles` tiles brings near, so that together they bring all of the
// next panel, whose chunks are as many.
inline size_t lines_ahead(size_t width, size_t tiles) { return (width + tiles - 1) / tiles; }

}  // namespace hologram::backends::dense
