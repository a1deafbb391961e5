// A tile whose sums are f64: products, what sums begin with, bias and residual are added there and
// rounded once, before the activation. It takes about twice the time of one in f32.
//
// Networks that end in a close decision enlarge every rounding; some are off by more than is
// promised for f32 where sums are f32 as well.
#pragma once

#include "backends/cpu/dense/tile.h"

namespace hologram::backends::dense {

// For this CPU. Reads `exact_b`, knows no wide tiles and none that pause, and has no use for `part`
// and `ahead`.
TileKernel exact_tile_kernel();

}  // namespace hologram::backends::dense
