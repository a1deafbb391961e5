// Native code of an archive's programs, for each target, compiled on all threads and signed.
#pragma once

#include <string>
#include <vector>

#include "archive/signature.h"
#include "compiler/lower.h"

namespace hologram::compiler {

// Code sections (archive/code_section.h), one a target: "host" or "x86-64-v2" .. "x86-64-v4"; of
// two targets of one level the first. not_found for another name. A program that the code generator
// does not take is left to the interpreter.
Result<std::vector<std::vector<std::byte>>> compile_native_code(
    const Lowered& lowered, const std::vector<std::string>& targets, const archive::KeyPair& key);

}  // namespace hologram::compiler
