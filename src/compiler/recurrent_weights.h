// RecurrentWeights: the sizes of an LSTM or GRU that its dense kernel can run.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace hologram::compiler {

struct RecurrentWeights {
  int64_t gates, directions, hidden, inputs;
  int64_t steps, batch;  // 0 where they are not known

  // Whether few rows go through R and through W, so that weights of 16 bits pay. What is not known
  // most often is one, in models that run while they listen; products of many rows take a tenth
  // longer than in f32.
  bool few_states() const { return batch <= 2; }
  bool few_inputs() const { return (steps == 0 ? 1 : steps) * (batch == 0 ? 1 : batch) <= 3; }
};

// Nothing where activations are not the usual ones, gates are clipped, weights are no constants, or
// the model is mistaken, which the plain operator will name.
std::optional<RecurrentWeights> recurrent_weights(const graph::Graph& graph,
                                                  const graph::Node& node);

}  // namespace hologram::compiler
