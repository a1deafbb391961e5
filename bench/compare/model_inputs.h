// The inputs a model is measured with.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/peers/onnx_runtime.h"
#include "runtime/session/session.h"

namespace hologram::compare {

// What the table of models (tests/models/models.json) says of a model; null where it says nothing.
struct ModelEntry {
  std::string name;            // the table's, or the file's
  nlohmann::ordered_json run;  // the largest of its runs, or null
};
ModelEntry find_entry(const nlohmann::ordered_json& table, const std::filesystem::path& model);

// The inputs of an opened archive, without data.
std::vector<peers::PeerTensor> ports_of(const runtime::Session& session);

// By the entry's run where there is one. Otherwise floats are normal, integers small tokens, masks
// ones, and open dimensions get sizes by what they seem to mean: a batch of 1, pictures of 224 x
// 224, sequences of 128, sounds of a second. Each `draw` gives others of their kind.
Result<std::vector<peers::PeerTensor>> draw_inputs(const ModelEntry& entry,
                                                   const std::vector<peers::PeerTensor>& ports,
                                                   uint32_t draw = 0);

}  // namespace hologram::compare
