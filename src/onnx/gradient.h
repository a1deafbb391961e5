// ai.onnx.preview.training.Gradient: the derivatives of one value of a graph by others, written as
// ordinary nodes when the model is read.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace hologram::onnx {

struct GradientRequest {
  graph::ValueId y = graph::kNoValue;
  std::vector<graph::ValueId> sources;    // the values that stand for xs and zs in the graph
  std::vector<graph::ValueId> arguments;  // what they are here; mostly the same
  size_t differentiated = 0;              // the first so many are the xs
  std::string name;                       // of the node, for messages
  int opset = 0;
};

// Adds nodes at the end of the graph; the derivative of y (summed, if it has several elements) by
// each of the xs. An operator on the way without a known derivative is refused by name.
Result<std::vector<graph::ValueId>> add_gradient(graph::Graph& graph,
                                                 const GradientRequest& request);

}  // namespace hologram::onnx
