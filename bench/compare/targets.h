// What the project set itself to reach beside ONNX Runtime, held against measured rows.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hologram::compare {

// A chapter of the documentation: each target with what the rows show, the rows that miss it by
// name, and for precisions that are too slow where their time goes (rows taken with --profile).
std::string targets_chapter(const nlohmann::json& rows);

}  // namespace hologram::compare
