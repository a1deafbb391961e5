// Model outputs for people and for files.
#pragma once

#include <filesystem>
#include <string>

#include "backends/cpu/kernels/tensor.h"
#include "support/result.h"

namespace hologram::cli {

// "f32 [1, 1000]  min -2.1  max 9.3  mean 0.01  [0.12 0.31 0.5 ...]"; sequences element by element.
std::string summarise(const kernels::Value& value);

// The `count` largest elements of the last axis of the first row: "  243  0.8731".
Result<std::string> top(const kernels::Value& value, int count);

// .npy, .json (shape and elements), anything else: raw bytes.
Status write_output(const std::filesystem::path& path, const kernels::Value& value);

}  // namespace hologram::cli
