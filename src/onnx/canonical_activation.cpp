#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 13 the input was seen as a matrix, split at `axis` (1 unless said).
Status coerce_softmax(CanonicalContext& c) {
  c.node.op += "Coerced";
  c.node.domain = "hologram";
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Hardmax", "", 13, coerce_softmax},
    {"LogSoftmax", "", 13, coerce_softmax},
    {"Softmax", "", 13, coerce_softmax},
};

}  // namespace

std::span<const Rewrite> activation_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
