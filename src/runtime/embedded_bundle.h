// The bundle of kernels that is part of this library.
#pragma once

#include "runtime/bundle/kernel_bundle.h"

namespace hologram::runtime {

// Opened once; the same for every caller.
const KernelBundle& embedded_bundle();

}  // namespace hologram::runtime
