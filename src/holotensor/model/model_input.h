// ModelInput: the tensors of a model file, one at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "holotensor/tensor.h"
#include "support/result.h"

namespace hologram::holotensor {

struct ModelTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

// Other layers give their own: the ONNX reader gives a model's initialisers.
class ModelInput {
 public:
  virtual ~ModelInput() = default;
  virtual const std::vector<ModelTensor>& tensors() const = 0;
  // The tensor's bytes. Only one is held by encode_model() at a time.
  virtual Result<SharedBytes> read(size_t tensor) const = 0;
  // The same where they lie, so that they are never all in memory; null where that cannot be. Lives
  // as long as the input.
  virtual std::unique_ptr<TensorBytes> stored(size_t /*tensor*/) const { return nullptr; }
};

Result<std::unique_ptr<ModelInput>> safetensors_input(const std::filesystem::path& path);

}  // namespace hologram::holotensor
