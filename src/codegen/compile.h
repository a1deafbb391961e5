// codegen: ISA programs to native code, through LLVM. No LLVM header is needed to use this layer.
//
// compile() may be called from several threads at once; every thread keeps one LLVM target machine
// for each level it has compiled for.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/target.h"
#include "isa/native_code.h"
#include "isa/program.h"
#include "support/result.h"

namespace hologram::codegen {

// How much time the compiler may take. The results of the code are the same.
enum class Effort : uint8_t {
  full,   // the code is as fast as it gets
  quick,  // compiled some times sooner, runs slower: for programs that run once
};

// Machine code of `program` for `target`: verified, position independent, without outside symbols.
// verify_error for a program that breaks a rule of the ISA, unsupported for one with more than a
// thousand jumps; anything else is a defect (internal).
Result<isa::NativeCode> compile(const isa::Program& program, const Target& target,
                                Effort effort = Effort::full);

// The LLVM IR that compile() hands to the machine code generator, for people: after optimisation,
// or as first written.
Result<std::string> compile_to_ir(const isa::Program& program, const Target& target,
                                  bool optimised = true);

}  // namespace hologram::codegen
