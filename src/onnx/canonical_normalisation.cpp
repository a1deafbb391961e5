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
    {"BatchNormalization", "", 9, batch_norm_7},
    {"BatchNormalization", "", 14, batch_norm_14},
    {"Dropout", "", 12, dropout_12},
};

}  // namespace

std::span<const Rewrite> normalisation_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
