// The kernels that codegen_bench compiles, as a user would write them: one thread an element, no
// thought of vectors.
#pragma once

#include "isa/program.h"

namespace hologram::bench {

isa::Program vector_add();
isa::Program relu();
isa::Program axpy();
isa::Program gelu();  // the exact one, with erf
isa::Program elementwise(isa::Opcode op, DType type);
isa::Program sum();             // one block strides through the array, then a group reduction
isa::Program row_softmax();     // a block a row: strided loops, group reductions, a barrier
isa::Program matmul();          // one thread an element of C, a loop over k
isa::Program convolution3x3();  // one thread a pixel, borders by `if`

}  // namespace hologram::bench
