// Makes the ISA programs of the ops from the standard library's kernels. Linked into
// the tool that makes the bundle of precompiled kernels, never into the runtime.
#pragma once

#include <span>
#include <vector>

#include "isa/program.h"
#include "lang/ir.h"
#include "support/result.h"

namespace hologram::runtime {

// Every form of every op that the library does not hold as it stands (its f32 kernels). not_found
// where `library` lacks an op's kernel.
Result<std::vector<isa::Program>> build_op_programs(std::span<const lang::ir::Kernel> library);

}  // namespace hologram::runtime
