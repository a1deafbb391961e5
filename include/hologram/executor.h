// Executor: runs programs and ops on a backend.
#pragma once

#include "runtime/executor.h"

namespace hologram {
using runtime::Argument;
using runtime::Executor;
using runtime::Kernel;
using runtime::KernelRef;
using runtime::LaunchShape;
using runtime::PreparedLaunch;
}  // namespace hologram
