#include "compiler/join_convolutions.h"

#include <algorithm>
#include <utility>

#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueUses;

// Of the image between: what stays in the second cache anyway is not worth a step of its own kind.
constexpr int64_t kLargeImage = int64_t{1} << 20;  // bytes

bool is_packed_conv(const Node& node) {
  const graph::Attributes& a = node.attributes;
  return node.domain == "hologram" && node.op == "Conv" && a.integer("packed") != 0 &&
         a.integer("blocked_input") != 0 && a.integer("blocked_output") != 0 &&
         a.integer("algorithm") == 0 && a.integer("digits") == 0 && a.integer("mirrored") == 0 &&
         a.integer("half") == 0 && a.integer("exact") == 0 && !a.has("points_shape") &&
         node.input(3) == kNoValue && a.integers("weight_shape").size() == 4;
}

bool is_depthwise(const Node& node) {
  const auto shape = node.attributes.integers("weight_shape");
  const int64_t groups = node.attributes.integer("group", 1);
  return groups > 1 && shape[0] == groups && shape[1] == 1 && node.attributes.integer("parts") == 0;
}

// Each pixel of the result is made of one pixel.
bool is_of_points(const Node& node) {
  const graph::Attributes& a = node.attributes;
  const auto shape = a.integers("weight_shape");
  const auto all = [&](const char* name, int64_t value) {
    return std::ranges::all_of(a.integers(name), [&](int64_t given) { return given == value; });
  };
  return a.integer("group", 1) == 1 && shape[2] == 1 && shape[3] == 1 && all("strides", 1) &&
         all("pads", 0);
}

bool is_large_image(const Graph& graph, ValueId id) {
  const Shape* shape = graph::shape_of(graph, id);
  if (!shape || shape->rank() != 5) return false;
  int64_t bytes = graph.value(id).type.dtype == DType::bf16 ? 2 : 4;
  for (size_t axis = 1; axis < 5; ++axis) {  // of one sample
    const Dim& dim = (*shape)[axis];
    if (dim.is_symbol() || dim.value() < 1 || dim.value() > kLargeImage) return false;
    bytes = std::min(bytes * dim.value(), kLargeImage);
  }
  return bytes >= kLargeImage && (*shape)[3].value() > 1;
}

void join(Node& points, Node& depthwise, bool bf16) {
  const graph::Attributes& from = points.attributes;
  graph::Attributes& to = depthwise.attributes;
  const auto shape = from.integers("weight_shape");
  to.set("points_shape", std::vector<int64_t>(shape.begin(), shape.end()));
  if (const int64_t parts = from.integer("parts")) to.set("points_parts", parts);
  if (from.integer("long_sums") != 0) to.set("points_long_sums", int64_t{1});
  if (bf16) to.set("points_output", int64_t{static_cast<uint8_t>(DType::bf16)});
  if (from.has("activation")) to.set("points_activation", std::string(from.text("activation")));
  for (const auto& [name, joined] : {std::pair{"activation_first", "points_first"},
                                     {"activation_second", "points_second"},
                                     {"post_scale", "points_scale"},
                                     {"post_shift", "points_shift"},
                                     {"post_low", "points_low"}})
    if (from.has(name)) to.set(joined, from.number(name));
  depthwise.inputs.resize(5, kNoValue);
  depthwise.inputs[0] = points.inputs[0];
  depthwise.inputs[4] = points.inputs[1];
  if (points.input(2) != kNoValue) depthwise.inputs.push_back(points.input(2));
  ValueUses::remove(points);
}

}  // namespace

void join_convolutions(Graph& graph, graph::FusionReport& report) {
  for (Node& node : graph.nodes)
    for (graph::Subgraph& sub : node.subgraphs) join_convolutions(*sub.graph, report);
  ValueUses uses(graph);
  for (Node& node : graph.nodes) {
    if (!is_packed_conv(node) || !is_depthwise(node)) continue;
    const ValueId between = node.inputs[0];
    Node* points = uses.maker(between, "Conv", "hologram");
    if (!points || uses.count(between) != 1 || !is_packed_conv(*points) || !is_of_points(*points) ||
        points->attributes.integers("weight_shape")[0] !=
            node.attributes.integers("weight_shape")[0] ||
        !is_large_image(graph, between))
      continue;
    join(*points, node, graph.value(between).type.dtype == DType::bf16);
    report.fused.push_back({node.name, "Conv of points, depthwise Conv",
                            graph.value(node.outputs[0]).type.to_string()});
  }
  uses.sweep();
}

}  // namespace hologram::compiler
