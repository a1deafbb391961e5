#include "onnx/canonical.h"

namespace hologram::onnx {

std::span<const Rewrite> network_rewrites() { return {}; }

}  // namespace hologram::onnx
