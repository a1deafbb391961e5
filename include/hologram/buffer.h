// Buffer<T>: typed memory on a backend.
#pragma once

#include "runtime/buffer.h"

namespace hologram {
using runtime::Buffer;
}  // namespace hologram
