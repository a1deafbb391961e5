#include "onnx/canonical.h"

namespace hologram::onnx {

std::span<const Rewrite> normalisation_rewrites() { return {}; }

}  // namespace hologram::onnx
