// The instruction-set levels of a CPU by their x86-64 psABI names; "" where there is none.
#pragma once

#include <string_view>

namespace hologram::backends {

// "x86-64-v4", "x86-64-v3", "x86-64-v2", or "" (older, or another architecture).
std::string_view host_level();

// 4, 3, 2; 0 for a name that is not known. A CPU runs every level up to its own.
int level_rank(std::string_view level);

}  // namespace hologram::backends
