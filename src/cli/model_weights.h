// The weights of a model file, whatever its format, as HoloTensor's encoder takes them.
#pragma once

#include <filesystem>
#include <memory>

#include "holotensor/model/model_input.h"
#include "support/result.h"

namespace hologram::cli {

// By the name's extension: `.safetensors`, or `.onnx` (initialisers and constants of the main
// graph; texts are no weights and are left out).
Result<std::unique_ptr<holotensor::ModelInput>> open_model_weights(
    const std::filesystem::path& path);

}  // namespace hologram::cli
