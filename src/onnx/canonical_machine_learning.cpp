#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 2 a label was its place in classes_strings.
Status label_by_place(CanonicalContext& c) {
  c.node.op = "LabelByPlace";
  c.node.domain = "hologram";
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"LabelEncoder", "ai.onnx.ml", 2, label_by_place},
};

}  // namespace

std::span<const Rewrite> machine_learning_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
