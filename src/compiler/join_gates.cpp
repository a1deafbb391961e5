#include "compiler/join_gates.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/cpu/dense/gate.h"
#include "backends/cpu/kernels/fused.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueUses;

bool has_gate_activation(const Node& node) {
  const auto activation = kernels::activation_named(node.attributes.text("activation"));
  return activation && backends::dense::is_gate_activation(*activation);
}

// A 1 x 1 convolution in f32 of a blocked image, with nothing added but a bias.
bool is_layer(const Graph& graph, const Node& node) {
  const graph::Attributes& a = node.attributes;
  const auto shape = a.integers("weight_shape");
  const auto all = [](auto values, int64_t wanted) {
    return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  return shape.size() > 2 && all(shape.subspan(2), 1) && a.integer("packed") != 0 &&
         a.integer("blocked_input") != 0 && a.integer("blocked_output") != 0 &&
         a.integer("algorithm") == 0 && a.integer("digits") == 0 && a.integer("parts") == 0 &&
         a.integer("half") == 0 && a.integer("group", 1) == 1 && all(a.integers("strides"), 1) &&
         all(a.integers("pads"), 0) && !a.has("points_shape") && node.input(3) == kNoValue &&
         graph::is_f32(graph, node.inputs[1]) && has_gate_activation(node);
}

void move_layer(const Node& from, const std::string& name, Node& to) {
  if (from.attributes.has("activation"))
    to.attributes.set(name + "_activation", std::string(from.attributes.text("activation")));
  for (const auto& [given, moved] : {std::pair{"activation_first", "_first"},
                                     {"activation_second", "_second"},
                                     {"post_scale", "_scale"},
                                     {"post_shift", "_shift"},
                                     {"post_low", "_low"}})
    if (from.attributes.has(given)) to.attributes.set(name + moved, from.attributes.number(given));
}

}  // namespace

void join_gates(Graph& graph, graph::FusionReport& report) {
  for (Node& node : graph.nodes)
    for (graph::Subgraph& sub : node.subgraphs) join_gates(*sub.graph, report);
  ValueUses uses(graph);
  const auto only_maker = [&](ValueId id, const char* op) -> Node* {
    return id != kNoValue && uses.count(id) == 1 ? uses.maker(id, op, "hologram") : nullptr;
  };
  for (Node& node : graph.nodes) {
    if (node.domain != "hologram" || node.op != "Scale" || node.inputs.size() != 3 ||
        node.input(1) != kNoValue)
      continue;
    const ValueId image = node.inputs[2];
    Node* excite = only_maker(node.input(0), "Conv");
    Node* squeeze = excite ? only_maker(excite->inputs[0], "Conv") : nullptr;
    Node* mean = squeeze ? only_maker(squeeze->inputs[0], "GlobalAveragePool") : nullptr;
    if (!mean || mean->inputs[0] != image || !is_layer(graph, *excite) ||
        !is_layer(graph, *squeeze))
      continue;
    const auto to_hidden = squeeze->attributes.integers("weight_shape");
    const auto to_channels = excite->attributes.integers("weight_shape");
    if (to_hidden[0] != to_channels[1] || to_hidden[1] != to_channels[0]) continue;
    node.op = "Gate";
    node.attributes.set("channels", to_channels[0]);
    node.attributes.set("hidden", to_hidden[0]);
    move_layer(*squeeze, "squeeze", node);
    move_layer(*excite, "excite", node);
    node.inputs = {image, squeeze->inputs[1], excite->inputs[1], squeeze->input(2),
                   excite->input(2)};
    while (node.inputs.back() == kNoValue) node.inputs.pop_back();
    ValueUses::remove(*mean);
    ValueUses::remove(*squeeze);
    ValueUses::remove(*excite);
    report.fused.push_back({node.name, "GlobalAveragePool, Conv, Conv, Scale",
                            graph.value(node.outputs[0]).type.to_string()});
  }
  uses.sweep();
}

}  // namespace hologram::compiler
