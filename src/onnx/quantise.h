// Quantise: an ONNX model in f32 -> the same model with QuantizeLinear and DequantizeLinear around
// the operands of its convolutions and products, weights stored as 8-bit integers.
//
// Weights are symmetric, a scale a filter or column (one for all before opset 13, which had no
// axis); activations u8 with a zero point; the bias of a convolution i32 in units of both scales.
// What is not quantised is copied byte for byte; external data is taken into the file.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/result.h"

namespace hologram::onnx {

// What can be quantised: Conv, MatMul and Gemm of the outermost graph by f32 initializers.
struct QuantisationPlan {
  struct Kept {
    std::string node, op, reason;
  };
  int64_t opset = 0;
  size_t nodes = 0;
  std::vector<std::string> activations;  // whose range has to be known, each once
  std::vector<Kept> kept;                // convolutions and products that stay in f32
};

// Nodes named in `skip` stay in f32; a name that no node has is an error.
Result<QuantisationPlan> plan_quantisation(const std::filesystem::path& model,
                                           const std::set<std::string>& skip = {});

struct ActivationRange {
  float low = 0, high = 0;  // 0 is added where it lies outside
};

// The bytes of the quantised model. `ranges` has every activation of the plan.
Result<std::string> quantise_model(const std::filesystem::path& model,
                                   const std::set<std::string>& skip,
                                   const std::map<std::string, ActivationRange>& ranges);

}  // namespace hologram::onnx
