#include "backends/cpu/kernels/families.h"

namespace hologram::kernels {

std::span<const Kernel> machine_learning_kernels() { return {}; }

}  // namespace hologram::kernels
