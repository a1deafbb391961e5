#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 13 the axes were an attribute.
Status axes_to_input(CanonicalContext& c) {
  c.integers_to_input("axes", 1);
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Squeeze", "", 13, axes_to_input},
    {"Unsqueeze", "", 13, axes_to_input},
};

}  // namespace

std::span<const Rewrite> movement_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
