// NumPy's .npz files: a zip of .npy arrays, each with a name.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "support/npy.h"
#include "support/result.h"

namespace hologram::cli {

// Arrays by name (without ".npy"), stored or compressed.
Result<std::map<std::string, NpyArray>> read_npz(const std::filesystem::path& path);
// Uncompressed, as numpy.savez writes it; complete or not there at all.
Status write_npz(const std::filesystem::path& path, const std::map<std::string, NpyArray>& arrays);

}  // namespace hologram::cli
