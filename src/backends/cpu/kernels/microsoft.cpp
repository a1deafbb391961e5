#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {

std::span<const Kernel> microsoft_kernels() { return {}; }

}  // namespace hologram::kernels
