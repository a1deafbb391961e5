// Identities: nodes whose result is one of their inputs, bit for bit, and chains of nodes that one
// node does as well.
//
// What is exact is decided on values: x * 1 and x - 0 are x, also for NaN and -0; x + 0 is not in
// floating point (-0 + 0 is +0), x + -0 is. Constant folding is no pass of its own but a part of
// resolve(): what a shape is may hang on it, and what can be expanded on shapes.
#pragma once

#include "graph/graph.h"

namespace hologram::graph {

// Also inside subgraphs. The nodes left without a reader are for remove_dead_code().
//
//   x                 Identity, Dropout outside training, Cast to the same type or there and back
//                     without loss, x * 1, x / 1, x ^ 1, x - 0, x + 0 (integers; -0 in floats),
//                     x and/or/xor the neutral element, Not/Neg twice, Where by a constant,
//                     Transpose that moves nothing, Reshape/Flatten/Squeeze/Unsqueeze/Expand to the
//                     same shape, Slice of everything, Pad by nothing, Tile once, Concat/Split/
//                     Min/Max/Sum/Mean of one, Clip without bounds
//   one node          Transpose of Transpose; Reshape of Reshape, Flatten, Squeeze or Unsqueeze;
//                     Relu or Abs twice
Status remove_identities(Graph& graph);

}  // namespace hologram::graph
