#include "onnx/canonical.h"
#include "onnx/model.h"

namespace hologram::onnx {
namespace {

// Before 13 the axes were an attribute.
Status axes_to_input(CanonicalContext& c) {
  c.integers_to_input("axes", 1);
  return {};
}

// Before 10 everything was an attribute.
Status slice_bounds(CanonicalContext& c) {
  if (!c.attributes().has("starts") || !c.attributes().has("ends"))
    return fail(ErrorCode::corrupt, "a Slice of opset {} has attributes starts and ends",
                c.opset());
  c.integers_to_input("starts", 1);
  c.integers_to_input("ends", 2);
  c.integers_to_input("axes", 3);
  return {};
}

// Before 13 the sizes were an attribute.
Status split_sizes(CanonicalContext& c) {
  c.integers_to_input("split", 1);
  return {};
}

// Before 11 the pads and the value were attributes; the value is a number of no particular type.
Status pad_with_number(CanonicalContext& c) {
  if (!c.attributes().has("pads"))
    return fail(ErrorCode::corrupt, "a Pad of opset {} has an attribute pads", c.opset());
  c.integers_to_input("pads", 1);
  c.node.op = "PadWithNumber";
  c.node.domain = "hologram";
  return {};
}

// Renamed in 11.
Status scatter_elements(CanonicalContext& c) {
  c.node.op = "ScatterElements";
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Pad", "", 11, pad_with_number},   {"Scatter", "", kNewestOpset + 1, scatter_elements},
    {"Slice", "", 10, slice_bounds},    {"Split", "", 13, split_sizes},
    {"Squeeze", "", 13, axes_to_input}, {"Unsqueeze", "", 13, axes_to_input},
};

}  // namespace

std::span<const Rewrite> movement_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
