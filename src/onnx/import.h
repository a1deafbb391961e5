// Import: messages -> graph. Names become values, functions are inlined, subgraphs get captures.
#pragma once

#include "graph/graph.h"
#include "onnx/proto.h"
#include "onnx/tensor.h"

namespace hologram::onnx {

Result<graph::Graph> import_model(const ModelProto& model, TensorReader& tensors);

}  // namespace hologram::onnx
