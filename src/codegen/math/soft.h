// Soft routines: rare or slow paths written in C (soft.c), compiled to LLVM bitcode when Hologram
// is built and linked into the code that needs them.
//
// Internal to the layer (LLVM types).
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/Module.h>

#include "codegen/lane_ops.h"
#include "support/result.h"

namespace hologram::codegen::soft {

// Calls the f64 routine `name` with the f64 arguments, for vectors lane after lane. Only lanes set
// in `where` (null: all) are called; the others are 0.
llvm::Value* call(LaneOps& ops, llvm::StringRef name, llvm::ArrayRef<llvm::Value*> arguments,
                  llvm::Value* where = nullptr);

// Brings the routines that `module` calls into it, as private functions.
Status link(llvm::Module& module);

}  // namespace hologram::codegen::soft
