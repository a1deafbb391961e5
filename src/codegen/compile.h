// codegen: ISA programs to native code, through LLVM. No LLVM header is needed to use this layer.
//
// compile() may be called from several threads at once; every thread keeps one LLVM target machine
// for each level it has compiled for.
#pragma once

#include <string>

#include "codegen/target.h"
#include "isa/native_code.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::codegen {

// Machine code of `program` for `target`: verified, position independent, without outside symbols.
// verify_error for a program that breaks a rule of the ISA; anything else is a defect (internal).
Result<isa::NativeCode> compile(const isa::Program& program, const Target& target);

// The LLVM IR that compile() hands to the machine code generator, for people: after optimisation,
// or as first written.
Result<std::string> compile_to_ir(const isa::Program& program, const Target& target,
                                  bool optimised = true);

}  // namespace hologram::codegen
