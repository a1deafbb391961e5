// The movement operators that have files of their own; movement.cpp adds them.
#pragma once

#include "graph/operator.h"

namespace hologram::graph::ops {

void add_regions(OperatorTable& table);  // Slice, Split, Pad, CenterCropPad
void add_repeats(OperatorTable& table);  // Expand, Tile, DepthToSpace, SpaceToDepth, ...

}  // namespace hologram::graph::ops
