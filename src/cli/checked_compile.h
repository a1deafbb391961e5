// Compiling with a look at what the precision costs.
#pragma once

#include <filesystem>
#include <vector>

#include "compiler/compile_within.h"

namespace hologram::cli {

// The archive whose results on the samples of `folder` (see read_samples) are within what the
// precision promises, two thirds of it (`fast`) or three quarters (`bf16`) from those in f32, and
// three quarters of f32 from those in f64. Says on standard error what was widened. An error where
// even all of it widened is more than promised.
Result<std::vector<std::byte>> compile_checked(const std::filesystem::path& model,
                                               const compiler::CompileOptions& options,
                                               const std::filesystem::path& folder);

}  // namespace hologram::cli
