// Reduction of a failing program: what still fails with as little as possible left.
#pragma once

#include "isa/program.h"
#include "support/function_ref.h"

namespace hologram::codegen {

// `fails` says whether a (verified) program still fails. Instructions are replaced by zeros or left
// out, whole regions first, as long as it does.
isa::Program reduce(isa::Program program, FunctionRef<bool(const isa::Program&)> fails);

}  // namespace hologram::codegen
