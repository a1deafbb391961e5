// One row of the comparison: a model at a precision on a number of threads.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "archive/signature.h"
#include "bench/compare/model_inputs.h"

namespace hologram::compare {

struct Job {
  std::filesystem::path model, archive;
  ModelEntry entry;
  std::string precision = "f32";
  int threads = 1, runs = 20;
  double seconds = 0;    // turns go on for so long, even if there are more than `runs`
  bool profile = false;  // adds the times of our steps to the row
  bool exact = true;     // compares small models with a run in f64
  uint32_t draws = 1;    // inputs that this is done with; times are of the first
  bool near = false;     // all but the first differ from it by some units in the last place
  // Signs native code, and is trusted; made before the processes that compile and run.
  std::optional<archive::KeyPair> key = std::nullopt;
};

// Compiles the model into job.archive. What is true of every row of it: {"narrow_steps":, ...}, or
// {"error": ...}.
nlohmann::json compile_model(const Job& job);

// Runs both sides alternately on the same inputs in one process; before each run it waits until the
// other side's threads have gone to sleep. Openings take turns too. Figures of memory come from
// two more processes that each run one side alone (memory.h). {"error": ...} where something fails.
nlohmann::json measure(const Job& job, std::span<const std::filesystem::path> folders);

}  // namespace hologram::compare
