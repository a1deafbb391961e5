#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 11 the bounds were attributes.
Status clip_bounds(CanonicalContext& c) {
  c.node.op = "ClipToNumbers";
  c.node.domain = "hologram";
  return {};
}

// Before 7 the second operand was broadcast only where `broadcast` said so, from `axis` of the
// first on; without `axis` it met the last axes, as it does now.
Status broadcast_from_axis(CanonicalContext& c) {
  if (c.attributes().integer("broadcast") == 1 && c.attributes().has("axis")) {
    graph::Node align;
    align.op = "AlignAxes";
    align.domain = "hologram";
    align.name = c.node.name;
    align.opset = c.node.opset;
    align.inputs = {c.node.input(0), c.node.input(1)};
    align.attributes.set("axis", c.attributes().integer("axis"));
    align.outputs = {c.graph.add_value("")};
    c.set_input(1, align.outputs[0]);
    c.graph.nodes.push_back(std::move(align));
  }
  c.node.attributes.erase("broadcast");
  c.node.attributes.erase("axis");
  return {};
}

// C was broadcast only where `broadcast` said so.
Status gemm_broadcast(CanonicalContext& c) {
  c.node.attributes.erase("broadcast");
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Add", "", 7, broadcast_from_axis},     {"And", "", 7, broadcast_from_axis},
    {"Clip", "", 11, clip_bounds},           {"Div", "", 7, broadcast_from_axis},
    {"Equal", "", 7, broadcast_from_axis},   {"Gemm", "", 7, gemm_broadcast},
    {"Greater", "", 7, broadcast_from_axis}, {"Less", "", 7, broadcast_from_axis},
    {"Mul", "", 7, broadcast_from_axis},     {"Or", "", 7, broadcast_from_axis},
    {"Pow", "", 7, broadcast_from_axis},     {"Sub", "", 7, broadcast_from_axis},
    {"Xor", "", 7, broadcast_from_axis},
};

}  // namespace

std::span<const Rewrite> arithmetic_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
