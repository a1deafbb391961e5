// VectorWidth: how many threads run as one vector.
#pragma once

#include "codegen/kernel.h"

namespace hologram::codegen {

struct VectorWidth {
  // All lanes active: a whole number of machine vectors. 0: everything runs as the tail does.
  unsigned main = 1;
  unsigned tail = 1;  // what is left over: one vector under a mask, or thread by thread
};

// Functions that are many instructions each.
bool is_math(isa::Opcode op);
// Whether the program uses any of them.
bool has_math(const Kernel& kernel);

// The lanes of one machine vector of the elements that the program has most of.
unsigned native_lanes(const Kernel& kernel, const LaneShapes& shapes);

// The size of block that a program of group reductions is written for: the step, always the same,
// of the loops in which its threads stride through memory together. Such a block runs as one vector
// (Kernel::whole_block). 0 where there is none, or its values would not fit the registers.
unsigned whole_block_of(const isa::Program& program, const Target& target);

// `one_row`: blocks that follow each other along x run as one long row.
VectorWidth choose_width(const Kernel& kernel, const LaneShapes& shapes, bool one_row);

}  // namespace hologram::codegen
