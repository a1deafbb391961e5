#include "bench/compare/model_inputs.h"

#include <cstring>
#include <random>

#include "tests/models/inputs.h"

namespace hologram::compare {

using nlohmann::ordered_json;
using peers::PeerTensor;

namespace {

// Elements that a run's shapes name; those the model fixes are the same in every run.
int64_t size_of_run(const ordered_json& run) {
  int64_t total = 0;
  for (const auto& rule : run) {
    if (!rule.contains("shape")) continue;
    int64_t count = 1;
    for (const int64_t dim : rule["shape"].get<std::vector<int64_t>>()) count *= dim;
    total += count;
  }
  return total;
}

int64_t open_dimension(const PeerTensor& tensor, size_t axis) {
  if (axis == 0) return 1;
  if (tensor.type != DType::f32) return 128;
  if (tensor.shape.size() == 4) return axis == 1 ? 3 : 224;
  return tensor.shape.size() == 2 ? 16000 : 128;
}

}  // namespace

ModelEntry find_entry(const ordered_json& table, const std::filesystem::path& model) {
  ModelEntry found{model.stem().string(), nullptr};
  for (const auto& entry : table) {
    const bool file =
        entry.contains("file") &&
        std::filesystem::path(entry["file"].get<std::string>()).filename() == model.filename();
    if (!file && entry.value("architecture", "") != model.stem().string()) continue;
    if (!found.run.is_null()) break;
    found.name = entry.value("name", found.name);
    for (const auto& run : entry["runs"])
      if (found.run.is_null() || size_of_run(run) > size_of_run(found.run)) found.run = run;
  }
  return found;
}

std::vector<PeerTensor> ports_of(const runtime::Session& session) {
  std::vector<PeerTensor> ports;
  for (const auto& port : session.inputs()) {
    PeerTensor tensor{port.name, port.dtype, {}, {}};
    if (port.shape)
      for (const Dim& dim : *port.shape) tensor.shape.push_back(dim.is_symbol() ? -1 : dim.value());
    ports.push_back(std::move(tensor));
  }
  return ports;
}

Result<std::vector<PeerTensor>> draw_inputs(const ModelEntry& entry,
                                            const std::vector<PeerTensor>& ports, uint32_t draw) {
  if (!entry.run.is_null()) return models::make_inputs(ports, entry.run, draw);
  std::mt19937 random(7 + draw);
  std::normal_distribution<float> normal;
  std::vector<PeerTensor> inputs = ports;
  for (PeerTensor& tensor : inputs) {
    uint64_t count = 1;
    for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      int64_t& dim = tensor.shape[axis];
      if (dim < 0) dim = open_dimension(tensor, axis);
      count *= static_cast<uint64_t>(dim);
    }
    tensor.data.assign(bytes_for(tensor.type, count), std::byte{0});
    const bool mask = tensor.name.find("mask") != std::string::npos;
    for (uint64_t i = 0; i < count; ++i) {
      const int64_t token = mask ? 1 : static_cast<int64_t>(random() % 1000);
      const float value = normal(random);
      std::byte* at = tensor.data.data() + i * size_of(tensor.type);
      if (tensor.type == DType::f32)
        std::memcpy(at, &value, 4);
      else if (tensor.type == DType::i64)
        std::memcpy(at, &token, 8);
      else if (tensor.type == DType::i32)
        std::memcpy(at, &token, 4);
      else
        std::memset(at, mask ? 1 : 0, size_of(tensor.type));
    }
  }
  return inputs;
}

}  // namespace hologram::compare
