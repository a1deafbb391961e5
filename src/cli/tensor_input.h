// Model inputs from files: .npy, .npz, .pb (an ONNX TensorProto), pictures, or raw bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/kernels/tensor.h"
#include "cli/image.h"
#include "runtime/session/session.h"
#include "support/result.h"

namespace hologram::cli {

struct InputOptions {
  std::vector<std::string>
      files;  // "name=path", or one path for a model with one input, or an .npz
  std::vector<std::string> shapes;  // "name=1,3,224,224": for raw, picture and random inputs
  std::string image;                // ImageOptions::parse
  bool random = false;              // draw what is not given
  uint64_t seed = 0;
};

// One value an input of the model, in order, each checked against its type and rank. An input that
// is not given is an error that lists what the model takes.
Result<std::vector<kernels::Value>> read_inputs(std::span<const runtime::PortInfo> ports,
                                                const InputOptions& options);

// "image: f32 [1, 3, 224, 224]", one a line, indented.
std::string describe(std::span<const runtime::PortInfo> ports);

// Splits "name=rest"; the name is empty where there is no '='.
std::pair<std::string, std::string> split_assignment(std::string_view text);

}  // namespace hologram::cli
