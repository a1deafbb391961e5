#include "onnx/canonical.h"

namespace hologram::onnx {

std::span<const Rewrite> resize_rewrites() { return {}; }

}  // namespace hologram::onnx
