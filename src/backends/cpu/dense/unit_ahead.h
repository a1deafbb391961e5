// Brings what comes next from the third cache (or memory) into the second, a part with each step of
// a tile: what CPUs bring near by themselves comes late from there.
//
// Internal to the tiles of narrow types.
#pragma once

#include <algorithm>

#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {

class UnitAhead {
 public:
  UnitAhead(const UnitTile& tile, size_t steps)
      : at_(tile.ahead),
        end_(tile.ahead + tile.ahead_units),
        step_((tile.ahead_units / kChunk + steps - 1) / std::max<size_t>(steps, 1) * kChunk) {}
  // A line holds a chunk.
  void advance() {
    for (const uint32_t* stop = std::min(end_, at_ + step_); at_ < stop; at_ += kChunk)
      __builtin_prefetch(at_, 0, 2);
  }

 private:
  const uint32_t *at_, *end_;
  size_t step_;
};

}  // namespace hologram::backends::dense
