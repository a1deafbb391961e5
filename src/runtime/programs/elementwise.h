// Builds the ISA programs of the element-wise ops. Linked into the tool that makes the bundle of
// precompiled kernels, never into the runtime.
#pragma once

#include <vector>

#include "isa/program.h"
#include "runtime/programs/op_table.h"
#include "support/result.h"

namespace hologram::runtime {

Result<isa::Program> build_elementwise(ElementwiseOp op, Variant variant, DType type);

// One for every op, variant and type that there is.
Result<std::vector<isa::Program>> build_op_programs();

}  // namespace hologram::runtime
