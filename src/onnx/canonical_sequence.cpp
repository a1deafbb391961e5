#include "onnx/canonical.h"

namespace hologram::onnx {
namespace {

// Scan of opset 8 had lengths as input 0 and a batch axis in front of every tensor.
Status batched_scan(CanonicalContext& c) {
  if (const graph::Attribute* a = c.attributes().find("directions")) {
    std::vector<int64_t> directions = a->integers;
    c.node.attributes.erase("directions");
    c.node.attributes.set("scan_input_directions", std::move(directions));
  }
  c.node.attributes.set("batched", int64_t{1});
  return {};
}

constexpr Rewrite kRewrites[] = {
    {"Scan", "", 9, batched_scan},
};

}  // namespace

std::span<const Rewrite> sequence_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
