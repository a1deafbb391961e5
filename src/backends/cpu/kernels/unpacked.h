// Elements of less than a byte for kernels that only move elements.
//
// unpacked<slice> is `slice` for every type: 4-bit and 2-bit inputs arrive as one byte an element,
// and byte results leave packed. The kernel itself knows nothing of packing.
#pragma once

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// Types that are packed several to a byte.
constexpr bool is_packed(DType type) { return type != DType::string && bits_of(type) < 8; }

Status run_unpacked(KernelFunction kernel, KernelContext& context);

template <KernelFunction kernel>
Status unpacked(KernelContext& context) {
  return run_unpacked(kernel, context);
}

}  // namespace hologram::kernels
