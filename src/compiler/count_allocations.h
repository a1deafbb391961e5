// How often this test program has allocated so far: operator new, and aligned memory.
#pragma once

#include <cstdint>

namespace hologram::compiler {

int64_t allocations();

}  // namespace hologram::compiler
