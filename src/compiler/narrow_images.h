// The pass that keeps images as bf16 between convolutions that round them to bf16 anyway.
#pragma once

#include <cstddef>

#include "graph/graph.h"

namespace hologram::compiler {

// After choose_precision of bf16: a blocked image that only convolutions by bf16 products (as input
// or residual) and depthwise ones (as input) read, and one of these makes, becomes bf16. Half the
// bytes; the operands of products stay the same. Says how many.
size_t narrow_images(graph::Graph& graph);

}  // namespace hologram::compiler
