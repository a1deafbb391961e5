// VectorWidth: how many threads run as one vector.
#pragma once

#include "codegen/kernel.h"

namespace hologram::codegen {

struct VectorWidth {
  // All lanes active: a whole number of machine vectors. 0: everything runs as the tail does.
  unsigned main = 1;
  unsigned tail = 1;  // what is left over: one vector under a mask, or thread by thread
};

// Whether the program uses functions that are many instructions each.
bool has_math(const Kernel& kernel);

// `one_row`: blocks that follow each other along x run as one long row.
VectorWidth choose_width(const Kernel& kernel, const LaneShapes& shapes, bool one_row);

}  // namespace hologram::codegen
