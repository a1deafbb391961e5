// Rows cut into tiles of nearly equal height, so that none is left with a row or two.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hologram::backends::dense {

struct RowTiles {
  size_t rows, tiles;
  RowTiles(size_t rows, size_t most) : rows(rows), tiles((rows + most - 1) / most) {}
  size_t begin(size_t tile) const { return tile * (rows / tiles) + std::min(tile, rows % tiles); }
  size_t height(size_t tile) const { return begin(tile + 1) - begin(tile); }
};

}  // namespace hologram::backends::dense
