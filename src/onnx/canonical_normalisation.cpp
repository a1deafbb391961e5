// BatchNormalization before opset 9 could keep statistics an element instead of a channel; before
// opset 14 training was asked for by naming more outputs. Dropout had no training before opset 12.
#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

Status batch_norm_7(CanonicalContext& c) {
  const bool of_channels = c.attributes().integer("spatial", 1) != 0;
  c.node.attributes.erase("spatial");
  if (of_channels) return {};
  if (c.node.outputs.size() > 1)
    return fail(ErrorCode::unsupported,
                "training with spatial=0 is not supported; supported: one output, or spatial=1");
  c.node.op = "BatchNormalizationOfElements";
  c.node.domain = "hologram";
  return {};
}

// Before 7 training was the default, and `is_test` turned it off.
Status batch_norm_6(CanonicalContext& c) {
  if (c.attributes().integer("is_test") == 0)
    return fail(ErrorCode::unsupported,
                "is_test=0 (training before opset 7) is not supported; supported: is_test=1, or "
                "training_mode=1 from opset 14");
  c.node.attributes.erase("is_test");
  return {};
}

// Before 14 more outputs asked for training: the running mean and variance, and two that a gradient
// of the same framework would read.
Status batch_norm_14(CanonicalContext& c) {
  if (c.node.domain != "" || c.node.outputs.size() == 1) return {};
  if (c.node.outputs.size() > 3)
    return fail(ErrorCode::unsupported,
                "the outputs saved_mean and saved_var (training before opset 14) are not "
                "supported; supported: Y, mean and var");
  c.node.attributes.set("training_mode", int64_t{1});
  return {};
}

// Before 7 `is_test` turned training off.
Status dropout_7(CanonicalContext& c) {
  if (c.attributes().integer("is_test") == 0)
    return fail(ErrorCode::unsupported,
                "is_test=0 (training before opset 7) is not supported; supported: is_test=1");
  c.node.attributes.erase("is_test");
  return {};
}

// Before 10 the mask had the data's type.
Status dropout_10(CanonicalContext& c) {
  if (c.node.outputs.size() == 1) return {};
  c.node.op = "DropoutWithNumbers";
  c.node.domain = "hologram";
  return {};
}

Status dropout_12(CanonicalContext& c) {
  c.node.attributes.erase("ratio");  // of training, which these models cannot ask for
  return {};
}

// Before 21 scale and bias were of groups, not of channels.
Status group_norm_21(CanonicalContext& c) {
  c.node.op = "GroupNormalizationByGroup";
  c.node.domain = "hologram";
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"BatchNormalization", "", 7, batch_norm_6},
    {"BatchNormalization", "", 9, batch_norm_7},
    {"BatchNormalization", "", 14, batch_norm_14},
    {"Dropout", "", 7, dropout_7},
    {"Dropout", "", 10, dropout_10},
    {"Dropout", "", 12, dropout_12},
    {"GroupNormalization", "", 21, group_norm_21},
};

}  // namespace

std::span<const Rewrite> normalisation_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
