#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {

std::span<const Kernel> linear_algebra_kernels() { return {}; }

}  // namespace hologram::kernels
