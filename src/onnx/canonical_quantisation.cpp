#include "onnx/canonical.h"

namespace hologram::onnx {

std::span<const Rewrite> quantisation_rewrites() { return {}; }

}  // namespace hologram::onnx
