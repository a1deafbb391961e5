// The memory that one side takes: a process of hologram-peak, which holds neither the compiler nor
// the other side, opens the model and runs it once.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "bench/compare/measurement.h"

namespace hologram::compare {

// {"peak_mb":, "private_mb":} of a process for `side` ("hologram" or "ort"), or {"error": ...}.
// Private: what the process cannot share with another that runs the same model.
nlohmann::json measure_memory(const Job& job, const std::string& side,
                              std::span<const std::filesystem::path> folders);

}  // namespace hologram::compare
