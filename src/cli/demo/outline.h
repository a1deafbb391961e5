// The second half of the demo: an ONNX model on its whole way, from its nodes to a drawing.
#pragma once

#include <filesystem>

#include "cli/demo/picture.h"
#include "support/result.h"

namespace hologram::cli {

// Writes a model that finds outlines into `folder`, compiles it into an archive there, runs that on
// `large`, compares the result with plain loops, and draws the outlines of `small`.
Status demonstrate_model(const std::filesystem::path& folder, const Picture& large,
                         const Picture& small);

}  // namespace hologram::cli
