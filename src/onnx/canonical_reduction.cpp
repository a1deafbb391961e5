#include "onnx/canonical.h"

namespace hologram::onnx {

std::span<const Rewrite> reduction_rewrites() { return {}; }

}  // namespace hologram::onnx
