// How often this program has allocated so far: operator new, and aligned memory. For tests, which
// add tests/conformance/count_allocations.cpp to their sources.
#pragma once

#include <cstdint>

namespace hologram::compiler {

int64_t allocations();

}  // namespace hologram::compiler
