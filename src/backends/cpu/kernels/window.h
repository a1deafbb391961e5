// Window: how kernels of convolutions and pools slide over the spatial axes of a tensor.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// One entry a spatial axis.
struct Window {
  Dims input, size, stride, dilation, pad_begin, pad_end, output;
};

// Reads strides, dilations, pads and auto_pad of a node. `input` and `size` have one entry a
// spatial axis. `ceil_mode`: a last window that is only partly inside counts, if it starts inside.
Result<Window> make_window(const KernelContext& c, const Dims& input, const Dims& size,
                           bool ceil_mode = false);

// The same from plain lists, which may be empty: also for shape inference.
Result<Window> make_window(std::string_view auto_pad, std::span<const int64_t> strides,
                           std::span<const int64_t> dilations, std::span<const int64_t> pads,
                           const Dims& input, const Dims& size, bool ceil_mode);

}  // namespace hologram::kernels
