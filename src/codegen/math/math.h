// The mathematical functions as LLVM IR, on scalars and vectors of f32 or f64 alike.
//
// Internal to the layer (LLVM types). Errors are in docs/codegen.md: at most 2 ulp in f32 and 4 ulp
// in f64 over the whole range, special values as in C.
#pragma once

#include <llvm/IR/Value.h>

#include "isa/opcode.h"

namespace hologram::codegen {
class LaneOps;
}

namespace hologram::codegen::math {

// `op` is one of exp .. log10, rsqrt, sin .. erf.
llvm::Value* unary(LaneOps& ops, isa::Opcode op, llvm::Value* x);
llvm::Value* pow(LaneOps& ops, llvm::Value* x, llvm::Value* y);

}  // namespace hologram::codegen::math
