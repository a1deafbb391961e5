// One case of an ONNX suite: a folder with model.onnx and test_data_set_*/{input,output}_*.pb.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hologram::conformance {

enum class Outcome { passed, failed, refused };

struct CaseResult {
  std::string name;
  Outcome outcome = Outcome::failed;
  std::string reason;  // empty when passed
};

// The folders under `suite` that hold a model.onnx, by name; `suite` itself if it does.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& suite);

// Whether pointwise programs run as native code; set before cases are run. Otherwise interpreted.
inline bool native_code = false;

// Through the whole path: ONNX -> graph -> archive bytes -> session -> compare.
// Refused: an error while compiling. Failed: an error while running, or another answer.
CaseResult run_case(const std::filesystem::path& folder);

// The operators of a model, for grouping; empty when it cannot be read.
std::vector<std::string> operators_of(const std::filesystem::path& folder);

}  // namespace hologram::conformance
