#include "compiler/signal_filters.h"

#include <algorithm>

#include "backends/cpu/dense/conv_mirror.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {

using graph::Graph;
using graph::Node;

namespace {
constexpr int64_t kLongKernel = 64;
}  // namespace

bool is_signal_filter(const Node& node) {
  const auto shape = node.attributes.integers("weight_shape");
  const auto pads = node.attributes.integers("pads");
  const auto dilations = node.attributes.integers("dilations");
  const auto padding = node.attributes.text("auto_pad", "NOTSET");
  return shape.size() == 3 && shape[1] == 1 && shape[2] >= kLongKernel &&
         node.attributes.integer("group", 1) == 1 &&
         node.attributes.integer("blocked_input") == 0 &&
         node.attributes.integer("blocked_output") == 0 && node.input(3) == graph::kNoValue &&
         (padding == "NOTSET" || padding == "VALID") &&
         std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; }) &&
         std::ranges::all_of(dilations, [](int64_t step) { return step == 1; });
}

size_t fold_mirrored_filters(Graph& graph) {
  size_t folded = 0;
  for (Node& node : graph.nodes) {
    for (graph::Subgraph& sub : node.subgraphs) folded += fold_mirrored_filters(*sub.graph);
    if (node.domain != "hologram" || node.op != "Conv" || !is_signal_filter(node)) continue;
    // Those in the order of another runtime, of bf16 parts and of f16 stay as they are.
    if (node.attributes.integer("algorithm") != 0 || node.attributes.integer("parts") != 0 ||
        node.attributes.integer("half") != 0)
      continue;
    const graph::Tensor* weights = constant_of(graph, node.inputs[1]);
    if (!weights || weights->dtype != DType::f32) continue;
    const auto shape = node.attributes.integers("weight_shape");
    const auto even = backends::dense::even_filters(
        static_cast<size_t>(shape[0]), static_cast<size_t>(shape[2]), weights->as<float>());
    if (!even) continue;
    node.attributes.set("mirrored", int64_t{1});
    node.attributes.set("even", static_cast<int64_t>(*even));
    ++folded;
  }
  return folded;
}

}  // namespace hologram::compiler
