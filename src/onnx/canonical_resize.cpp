#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Before 9 the scales of Upsample were an attribute.
Status upsample_scales(CanonicalContext& c) {
  const graph::Attribute* scales = c.attributes().find("scales");
  if (!scales || scales->kind != graph::Attribute::Kind::numbers)
    return fail(ErrorCode::corrupt, "an Upsample of opset {} has an attribute scales", c.opset());
  HOLOGRAM_TRY(graph::Tensor tensor,
               graph::Tensor::from<float>({static_cast<int64_t>(scales->numbers.size())},
                                          std::span<const float>(scales->numbers)));
  c.set_input(1, c.graph.add_constant(std::move(tensor)));
  c.node.attributes.erase("scales");
  return {};
}

// Before 11 coordinates were asymmetric, and nothing but mode could be said.
Status asymmetric(CanonicalContext& c) {
  c.node.op = "ResizeBefore11";
  c.node.domain = "hologram";
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Resize", "", 11, asymmetric},
    {"Upsample", "", 9, upsample_scales},
    {"Upsample", "", 10, asymmetric},
};

}  // namespace

std::span<const Rewrite> resize_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
