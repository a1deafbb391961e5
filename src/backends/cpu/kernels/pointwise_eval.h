// One ISA instruction over a block of elements.
#pragma once

#include <cstdint>

#include "isa/program.h"
#include "support/result.h"

namespace hologram::kernels {

// d[i] = op(a[i], b[i], c[i]) for i < count. Operands the instruction does not have may be null.
Status evaluate_block(const isa::Instruction& instruction, void* d, const void* a, const void* b,
                      const void* c, int64_t count);

}  // namespace hologram::kernels
