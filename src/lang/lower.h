// Lowering: one kernel of the IR to one program of the ISA.
//
// Every array of two or more dimensions brings its extents along as scalars of type u64, after the
// kernel's own parameters: `a_shape0`, `a_shape1`, ... in the order of the arrays. Helpers are
// written out at their calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "isa/program.h"
#include "lang/diagnostic.h"
#include "lang/ir.h"
#include "support/result.h"

namespace hologram::lang {

// The kernel must be valid (validate.h). What only the ISA's verifier sees (a barrier that not all
// threads reach) is verify_error; `where`, if given, is then the statement's place in the source.
Result<isa::Program> lower(const ir::Kernel& kernel, Position* where = nullptr);

// The kernel's launch sizes as a program: the kernel's parameters, then the array `launch__` of
// six u64 that its one thread writes: threads along x, y and z, then the block's size. Nothing when
// the kernel does not say.
Result<std::optional<isa::Program>> lower_launch(const ir::Kernel& kernel);

// The name of the hidden parameter that carries an extent.
std::string shape_parameter(const std::string& array, uint32_t axis);

}  // namespace hologram::lang
