// Shapes of matrix products, for the families that have one.
#pragma once

#include "graph/infer.h"

namespace hologram::graph::ops {

// Output 0 is the product of inputs `a` and `b`, as numpy.matmul has it.
Status matmul_shape(InferContext& c, size_t a, size_t b);

}  // namespace hologram::graph::ops
