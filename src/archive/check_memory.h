// Planned memory, checked: no value is written over while it may still be read. What a kernel has
// checked of its inputs then holds until it returns, whatever an archive says.
#pragma once

#include "archive/plan_generated.h"
#include "support/result.h"

namespace hologram::archive {

// Of a plan whose ids, ranges and sources of views are in range. Two planned values that are needed
// at the same time lie apart, in the arena or in blocks that name each other as `beside`, but:
// - A program of one result may write it over an input that it reads for the last time.
// - A Concat may have inputs that lie in its result already, each where it would be copied to; they
//   keep their bytes and may be read on.
Status check_memory(const Plan& plan, const Model& model);

}  // namespace hologram::archive
