// Results of which only the rank is known.
#pragma once

#include "graph/infer.h"

namespace hologram::graph::ops {

// The rank is the length of a vector that the model gives.
inline Status set_rank(InferContext& c, int64_t rank) {
  if (rank < 0 || rank > static_cast<int64_t>(kernels::kMaxRank))
    return fail(ErrorCode::unsupported, "a result of rank {}; at most {}", rank, kernels::kMaxRank);
  c.set_shape(0, Shape(std::vector<Dim>(static_cast<size_t>(rank), unknown_dim())));
  return {};
}

}  // namespace hologram::graph::ops
