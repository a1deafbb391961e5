#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 11 the bounds were attributes.
Status clip_bounds(CanonicalContext& c) {
  c.number_to_input("min", 1);
  c.number_to_input("max", 2);
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Clip", "", 11, clip_bounds},
};

}  // namespace

std::span<const Rewrite> arithmetic_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
