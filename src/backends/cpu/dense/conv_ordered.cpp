#include "backends/cpu/dense/conv_ordered.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/ordered.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {
namespace {

constexpr size_t kSmallWork = 512 * 1024;
constexpr size_t kBlockBytes = 512 * 1024;  // of windows, which every panel of weights reads again
constexpr size_t kQuick = 8;                // taps that are copied by one vector

size_t terms(const ConvShape& s) { return s.in_channels * s.kernel_width; }
size_t padded_terms(const ConvShape& s) { return align_up(terms(s), kChunk); }

// The windows of a tile's rows, each first as it is, then as the tile reads it: [chunk][row][16].
size_t window_floats(const ConvShape& s) { return padded_terms(s) + kChunk; }

// What the sum of output `x` runs over.
void copy_window(const ConvShape& s, const float* input, size_t x, float* window) {
  const ptrdiff_t first =
      static_cast<ptrdiff_t>(x * s.stride_width) - static_cast<ptrdiff_t>(s.pad_left);
  const auto width = static_cast<ptrdiff_t>(s.in_width);
  const auto taps = static_cast<ptrdiff_t>(s.kernel_width);
  const bool inside = s.dilation_width == 1 && first >= 0 && first + taps <= width;
  for (size_t c = 0; c < s.in_channels; ++c, input += width, window += taps) {
    if (!inside) {
      for (ptrdiff_t k = 0; k < taps; ++k) {
        const ptrdiff_t at = first + k * static_cast<ptrdiff_t>(s.dilation_width);
        window[k] = at >= 0 && at < width ? input[at] : 0.0f;
      }
    } else if (s.kernel_width <= kQuick && (c + 1 < s.in_channels || first + 8 <= width)) {
      std::memcpy(window, input + first, kQuick * sizeof(float));  // the next taps overwrite
    } else {
      std::memcpy(window, input + first, s.kernel_width * sizeof(float));
    }
  }
}

}  // namespace

bool ordered_conv_supported(const ConvShape& s, Layout input, Layout output) {
  return input == Layout::nchw && output == Layout::nchw && s.groups == 1 && s.in_height == 1 &&
         s.out_height == 1 && s.kernel_height == 1;
}

size_t packed_ordered_conv_bytes(const ConvShape& s) {
  return packed_b_bytes(terms(s), s.out_channels);
}

void pack_ordered_conv(const ConvShape& s, const float* weights, float* packed) {
  pack_b(terms(s), s.out_channels, weights, terms(s), true, packed, ThreadPool::shared());
}

size_t ordered_conv_scratch_bytes(const Conv& conv) {
  const ConvShape& s = conv.shape;
  const RowTiles tiles(s.out_width, tile_kernel().rows);
  return (tiles.tiles * align_up(window_floats(s), kChunk) + s.out_width * padded_terms(s)) *
         sizeof(float);
}

void ordered_conv(const Conv& conv, std::byte* scratch, ThreadPool& pool) {
  const ConvShape& s = conv.shape;
  if (s.batch * s.out_channels * s.out_width == 0) return;
  const TileKernel kernel = tile_kernel();
  const RowTiles tiles(s.out_width, kernel.rows);
  const size_t depth = padded_terms(s), window = align_up(window_floats(s), kChunk);
  const size_t panels = (s.out_channels + kPanelColumns - 1) / kPanelColumns;
  const unsigned threads = s.out_width * s.out_channels * depth < kSmallWork ? 1 : 0;
  auto* const windows = reinterpret_cast<float*>(scratch);
  float* const packed = windows + tiles.tiles * window;
  size_t block = std::max<size_t>(kBlockBytes / (depth * sizeof(float)) / kernel.rows, 1);
  const size_t wanted = 4 * pool.size();
  if ((tiles.tiles + block - 1) / block * panels < wanted)
    block = std::max<size_t>(tiles.tiles * panels / wanted, 1);
  const size_t blocks = (tiles.tiles + block - 1) / block;
  static constexpr ptrdiff_t kNoOffset = 0;

  for (size_t n = 0; n < s.batch; ++n) {
    const float* input = conv.input + n * s.in_channels * s.in_width;
    const size_t out = n * s.out_channels * s.out_width;
    const auto pack = [&](size_t begin, size_t end) {
      for (size_t t = begin; t < end; ++t) {
        const size_t first = tiles.begin(t), rows = tiles.height(t);
        float* const row = windows + t * window;
        for (size_t r = 0; r < rows; ++r) {
          copy_window(s, input, first + r, row);
          for (size_t k = 0; k < depth; k += kChunk)
            std::memcpy(packed + first * depth + (k * rows) + r * kChunk, row + k,
                        kChunk * sizeof(float));
        }
      }
    };
    pool.parallel_for(tiles.tiles, 1, pack, Schedule::dynamic, threads);
    const auto run = [&](size_t begin, size_t end) {
      for (size_t job = begin; job < end; ++job) {
        const size_t column = job % panels * kPanelColumns, first = job / panels * block;
        for (size_t t = first; t < std::min(first + block, tiles.tiles); ++t) {
          Tile tile;
          tile.row = tiles.begin(t);
          tile.rows = tiles.height(t);
          tile.a = packed + tile.row * depth;
          tile.a_row = kChunk;
          tile.a_chunk = static_cast<ptrdiff_t>(tile.rows * kChunk);
          tile.taps = &kNoOffset;
          tile.chunks = depth / kChunk;
          tile.last = terms(s) - (depth - kChunk);
          tile.part = ordered_part(s.out_width, terms(s)) / kChunk;
          tile.b = conv.packed_weights + column * terms(s);
          tile.b_stride =
              std::min<size_t>(kPanelColumns, align_up(s.out_channels, kChunk) - column);
          tile.columns = std::min(kPanelColumns, s.out_channels - column);
          tile.column = column;
          tile.offset = out + column * s.out_width + tile.row;
          tile.c = conv.output + tile.offset;
          tile.c_row = 1;
          tile.c_column = static_cast<ptrdiff_t>(s.out_width);
          tile.c_block = static_cast<ptrdiff_t>(s.out_width * kChunk);
          tile.residual = conv.epilogue.residual ? conv.epilogue.residual + tile.offset : nullptr;
          tile.residual_row = 1;
          tile.epilogue = &conv.epilogue;
          kernel.run(tile);
        }
      }
    };
    pool.parallel_for(blocks * panels, 1, run, Schedule::dynamic, threads);
  }
}

}  // namespace hologram::backends::dense
