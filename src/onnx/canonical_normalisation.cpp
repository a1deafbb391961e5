// BatchNormalization before opset 9 could keep statistics an element instead of a channel; before
// opset 14 training was asked for by naming more outputs. Dropout had no training before opset 12.
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

Status batch_norm_7(CanonicalContext& c) {
  if (c.attributes().integer("spatial", 1) != 1)
    return fail(ErrorCode::unsupported,
                "spatial=0 is not supported; supported: statistics a channel (spatial=1)");
  c.node.attributes.erase("spatial");
  return {};
}

// Before 7 training was the default, and `is_test` turned it off.
Status batch_norm_6(CanonicalContext& c) {
  if (c.attributes().integer("is_test") == 0)
    return fail(ErrorCode::unsupported,
                "is_test=0 (training before opset 7) is not supported; supported: is_test=1, or "
                "training_mode=1 from opset 14");
  c.node.attributes.erase("is_test");
  c.node.attributes.erase("consumed_inputs");
  return {};
}

Status batch_norm_14(CanonicalContext& c) {
  if (c.node.outputs.size() > 1)
    return fail(ErrorCode::unsupported,
                "training by more outputs (before opset 14) is not supported; supported: one "
                "output, or training_mode=1 from opset 14");
  return {};
}

Status dropout_12(CanonicalContext& c) {
  c.node.attributes.erase("ratio");  // of training, which these models cannot ask for
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"BatchNormalization", "", 7, batch_norm_6},
    {"BatchNormalization", "", 9, batch_norm_7},
    {"BatchNormalization", "", 14, batch_norm_14},
    {"Dropout", "", 12, dropout_12},
};

}  // namespace

std::span<const Rewrite> normalisation_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
