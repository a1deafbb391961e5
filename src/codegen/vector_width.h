// VectorWidth: how many threads run as one vector.
#pragma once

#include "codegen/kernel.h"

namespace hologram::codegen {

struct VectorWidth {
  unsigned main = 1;  // all lanes active: a whole number of machine vectors
  unsigned tail = 1;  // what is left over: one vector under a mask, or thread by thread
};

// `one_row`: blocks that follow each other along x run as one long row.
VectorWidth choose_width(const Kernel& kernel, const LaneShapes& shapes, bool one_row);

}  // namespace hologram::codegen
