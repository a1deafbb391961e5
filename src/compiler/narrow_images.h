// The pass that keeps images as bf16 between convolutions that round them to bf16 anyway.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/graph.h"

namespace hologram::compiler {

// After choose_precision of bf16: a blocked image becomes bf16 where all that makes and reads it
// can: convolutions by bf16 products (input and residual), depthwise ones (input), scaling, pooling
// and concatenation. Half the bytes; the operands of products stay the same. What nodes make
// that `wide_nodes` names (empty: none) stays as it is. Says how many.
size_t narrow_images(graph::Graph& graph, const std::vector<bool>& wide_nodes = {});

}  // namespace hologram::compiler
