// Uniformity: which registers hold one value in all threads of a block, and which instructions are
// reached by all of them or none.
//
// Uniform are parameters, immediates, block ids, sizes, lengths, group results, loads from
// read-only arrays at uniform indices, and what is computed from uniform values alone. A register
// is uniform only if every assignment to it is. Code is non-uniform inside an `if` or `for` on
// non-uniform values, inside a loop that some threads may leave or continue earlier than others,
// and after a return that only some threads may have taken.
#pragma once

#include <vector>

#include "isa/program.h"

namespace hologram::isa {

struct Uniformity {
  std::vector<bool> registers;     // one a register: uniform wherever it is assigned
  std::vector<bool> instructions;  // one an instruction: reached by all threads of a block or none
};

// `program` must have valid operands and nesting. Linear in the size of the program.
Uniformity analyse_uniformity(const Program& program);

}  // namespace hologram::isa
