// Native code of an archive: checked, mapped and given to the programs, or left alone.
#pragma once

#include <span>

#include "archive/archive.h"
#include "backends/cpu/code_map.h"
#include "backends/cpu/kernels/pointwise.h"

namespace hologram::runtime {

// Takes the section of the highest level that this CPU has, if its signature is genuine and from a
// key that the archive's opener trusts, and attaches its code to the programs it was made from. In
// every other case nothing is attached and a note says why: the interpreter runs the programs. The
// map must outlive them.
backends::CodeMap attach_native_code(const archive::Archive& archive,
                                     std::span<kernels::Pointwise> programs);

}  // namespace hologram::runtime
