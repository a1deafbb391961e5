// The text form: one kernel, one instruction a line. The grammar is in docs/isa.md.
//
//   kernel saxpy(a: f32, x: read f32[], y: read_write f32[])
//     %0 = global_id.x.u32
//     %1 = param a
//     %2 = load x[%0]
//     %3 = load y[%0]
//     %4 = fma.f32 %1, %2, %3
//     store y[%0], %4
//   end
//
// For a verified program, assemble(disassemble(p)) == p. For a text t that assembles,
// disassemble(assemble(t)) is its canonical spelling: registers by number, types written out.
#pragma once

#include <string>
#include <string_view>

#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa {

// Parses and verifies. parse_error for text off its grammar, verify_error for a program that breaks
// a rule; both messages begin with "line:column: ".
Result<Program> assemble(std::string_view text);

// Never fails: what is not valid in `program` is printed as it can be.
std::string disassemble(const Program& program);

// One instruction of it, without indentation or line end.
std::string disassemble(const Program& program, const Instruction& instruction);

}  // namespace hologram::isa
