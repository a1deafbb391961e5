// The ops: math, activation, reduce, loss, linalg, memory.
#pragma once

#include "runtime/ops/ops.h"

namespace hologram {
namespace ops = runtime::ops;
}  // namespace hologram
