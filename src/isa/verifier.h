// The verifier: what must hold before a program may run.
//
// It proves: names and declarations; operand types; every register assigned on every path before
// it is read; nesting; what arrays are declared for (nothing stored to a read-only one); symbols
// and immediates in range; `for` counters left alone by their body; barriers and group reductions
// reached by all threads of a block or none. See docs/isa.md, "What the verifier proves".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "isa/program.h"
#include "support/result.h"

namespace hologram::isa {

// verify_error; the message names the instruction by number and opcode where there is one.
Status verify(const Program& program);

// The same for tools that show where: `instruction` is kWholeProgram for a bad declaration.
struct Violation {
  static constexpr uint32_t kWholeProgram = 0xffffffff;
  uint32_t instruction = kWholeProgram;
  std::string message;  // without the instruction's number and opcode
};
std::optional<Violation> find_violation(const Program& program);

}  // namespace hologram::isa
