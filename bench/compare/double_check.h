// The same model in f64 by the plain kernels: what both sides' results are measured against.
#pragma once

#include <filesystem>
#include <vector>

#include "bench/peers/agreement.h"

namespace hologram::compare {

inline constexpr uint64_t kLargestDoubleCheck = uint64_t{128} << 20;  // of an archive, in bytes

// Every f32 of the model becomes f64. An error where an operator of it has no kernel for that. With
// `rounded` the result of every operator is rounded to f32: what no sum in f32 could better, where
// the steps are those of the model.
Result<std::vector<kernels::Value>> run_in_double(const std::filesystem::path& model,
                                                  const std::vector<peers::PeerTensor>& inputs,
                                                  bool rounded = false);

// The worst distance of f32 results from those in f64, of the output's range.
Result<peers::OutputError> difference_from_double(std::span<const kernels::Value> exact,
                                                  std::span<const kernels::Value> results);

Result<std::vector<kernels::Value>> to_outputs(const std::vector<peers::PeerTensor>& tensors);

}  // namespace hologram::compare
