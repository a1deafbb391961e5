#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 13 the input was seen as a matrix, split at `axis` (1 unless said).
Status coerce_softmax(CanonicalContext& c) {
  c.node.op += "Coerced";
  c.node.domain = "hologram";
  return {};
}

// Before 7 the slope was one number, or one a channel.
Status slope_of_channels(CanonicalContext& c) {
  graph::Node align;
  align.op = "AlignAxes";
  align.domain = "hologram";
  align.name = c.node.name;
  align.opset = c.node.opset;
  align.inputs = {c.node.input(0), c.node.input(1)};
  align.attributes.set("axis", int64_t{1});
  align.outputs = {c.graph.add_value("")};
  c.set_input(1, align.outputs[0]);
  c.graph.nodes.push_back(std::move(align));
  return {};
}

// Before 6 the constants had fewer digits.
Status selu_digits(CanonicalContext& c) {
  if (!c.attributes().has("alpha")) c.node.attributes.set("alpha", double{1.6732f});
  if (!c.attributes().has("gamma")) c.node.attributes.set("gamma", double{1.0507f});
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Hardmax", "", 13, coerce_softmax}, {"LogSoftmax", "", 13, coerce_softmax},
    {"PRelu", "", 7, slope_of_channels}, {"Selu", "", 6, selu_digits},
    {"Softmax", "", 13, coerce_softmax},
};

}  // namespace

std::span<const Rewrite> activation_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
