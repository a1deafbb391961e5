// A model named on the command line: a .holo archive, or an .onnx model compiled on the spot.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/result.h"

namespace hologram::cli {

// "name=1,3,224,224" for every input whose shape is to be fixed.
Result<compiler::CompileOptions> compile_options(const std::vector<std::string>& shapes);

// A model that is compiled on the spot has native code of a key made for the occasion.
Result<runtime::Session> open_model(const std::filesystem::path& path,
                                    const std::vector<std::string>& shapes,
                                    const archive::OpenOptions& options = {},
                                    const runtime::WeightOptions& weights = {});

// An archive in memory, of which a copy is kept; `key` is trusted to have signed its native code.
Result<runtime::Session> open_archive(const std::vector<std::byte>& bytes,
                                      const std::optional<archive::KeyPair>& key = std::nullopt);

// For people: "weights at 24.3 dB or better, 51.2% of 4.13 MB".
std::string describe(const runtime::WeightStatus& weights);

}  // namespace hologram::cli
