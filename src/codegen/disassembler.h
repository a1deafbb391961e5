// The disassembler: what native code really does, for people and for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/native_code.h"
#include "support/result.h"

namespace hologram::codegen {

struct MachineInstruction {
  uint64_t offset = 0;  // in NativeCode::code
  std::string text;     // Intel syntax, "vaddps zmm0, zmm0, zmmword ptr [rdi + rcx]"
};

// Every instruction that can be reached from the entry, by offset. corrupt where the bytes are not
// instructions.
Result<std::vector<MachineInstruction>> disassemble(const isa::NativeCode& code);

}  // namespace hologram::codegen
