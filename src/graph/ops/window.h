// The sizes of what sliding windows make: shared by convolutions and pools.
#pragma once

#include <span>

#include "graph/infer.h"

namespace hologram::graph::ops {

// [batch, channels, one size a spatial axis] for a node with the attributes strides, dilations,
// pads and auto_pad, over input `x`. `kernel` has one entry a spatial axis.
Result<Shape> windowed_shape(const InferContext& c, const Shape& x, Dim channels,
                             std::span<const Dim> kernel, bool ceil_mode);

// The same for a transposed convolution, or an unpooling: also output_padding and output_shape.
Result<Shape> transposed_shape(const InferContext& c, const Shape& x, Dim channels,
                               std::span<const Dim> kernel);

// The kernel's size: the attribute kernel_shape, else the axes of the weights `w` after the first
// two. Both, if both are known, must agree.
Result<std::vector<Dim>> kernel_of(const InferContext& c, const Shape* w, size_t rank);

}  // namespace hologram::graph::ops
