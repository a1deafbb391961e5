#include "onnx/canonical.h"

namespace hologram::onnx {

std::span<const Rewrite> sequence_rewrites() { return {}; }

}  // namespace hologram::onnx
