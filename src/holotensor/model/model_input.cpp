#include "holotensor/model/model_input.h"

#include "holotensor/safetensors.h"

namespace hologram::holotensor {
namespace {

class SafetensorsBytes final : public TensorBytes {
 public:
  SafetensorsBytes(const SafetensorsReader& reader, const SafetensorsEntry& entry)
      : reader_(reader), entry_(entry) {}
  uint64_t size() const override { return entry_.size; }
  Status read(uint64_t offset, std::span<std::byte> out) const override {
    return reader_.read(entry_, offset, out);
  }

 private:
  const SafetensorsReader& reader_;
  const SafetensorsEntry& entry_;
};

class SafetensorsInput final : public ModelInput {
 public:
  explicit SafetensorsInput(SafetensorsReader reader) : reader_(std::move(reader)) {
    for (const SafetensorsEntry& entry : reader_.tensors()) {
      tensors_.push_back({entry.name, entry.dtype, entry.shape});
    }
  }
  const std::vector<ModelTensor>& tensors() const override { return tensors_; }
  Result<SharedBytes> read(size_t tensor) const override {
    HOLOGRAM_TRY(auto bytes, reader_.read(reader_.tensors()[tensor]));
    return SharedBytes::owned(std::move(bytes));
  }
  std::unique_ptr<TensorBytes> stored(size_t tensor) const override {
    return std::make_unique<SafetensorsBytes>(reader_, reader_.tensors()[tensor]);
  }

 private:
  SafetensorsReader reader_;
  std::vector<ModelTensor> tensors_;
};

}  // namespace

Result<std::unique_ptr<ModelInput>> safetensors_input(const std::filesystem::path& path) {
  HOLOGRAM_TRY(auto reader, SafetensorsReader::open(path));
  return std::make_unique<SafetensorsInput>(std::move(reader));
}

}  // namespace hologram::holotensor
