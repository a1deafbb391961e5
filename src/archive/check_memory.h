// Planned memory, checked: no value is written over while it may still be read. What a kernel has
// checked of its inputs then holds until it returns, whatever an archive says.
#pragma once

#include "archive/plan_generated.h"
#include "support/result.h"

namespace hologram::archive {

// Of a plan whose ids, ranges and sources of views are in range. Two planned values that are needed
// at the same time lie apart, in the arena or in blocks that name each other as `beside`. A program
// of one result may write it over an input that it reads for the last time.
Status check_memory(const Plan& plan);

}  // namespace hologram::archive
