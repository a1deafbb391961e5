// Rows cut into tiles of nearly equal height, so that none is left with a row or two.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hologram::backends::dense {

struct RowTiles {
  size_t rows, tiles;
  size_t least, larger;  // rows of each, and how many of the first have one more
  RowTiles(size_t rows, size_t most)
      : rows(rows),
        tiles((rows + most - 1) / most),
        least(tiles == 0 ? 0 : rows / tiles),
        larger(rows - tiles * least) {}
  size_t begin(size_t tile) const { return tile * least + std::min(tile, larger); }
  size_t height(size_t tile) const { return least + (tile < larger ? 1 : 0); }
};

}  // namespace hologram::backends::dense
