// Tensor: a typed, strided view of memory; and DLPack, for sharing tensors with other libraries.
#pragma once

#include "runtime/dlpack.h"
#include "runtime/tensor.h"

namespace hologram {
using runtime::Dims;
using runtime::from_dlpack;
using runtime::Tensor;
using runtime::to_dlpack;
using runtime::to_dlpack_versioned;
}  // namespace hologram
