#include "compiler/signal_filters.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/dense/conv_mirror.h"
#include "backends/cpu/dense/fourier.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {

namespace dense = backends::dense;
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

namespace {

// The convolution adds nothing to what its filters make.
bool is_plain(const Node& node) {
  constexpr std::string_view kOfItsShape[] = {
      "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides", "weight_shape"};
  return node.input(2) == graph::kNoValue &&
         std::ranges::all_of(node.attributes, [&](const graph::Attribute& a) {
           return std::ranges::find(kOfItsShape, a.name) != std::end(kOfItsShape) ||
                  (a.kind == graph::Attribute::Kind::integer && a.integer == 0);
         });
}

}  // namespace

namespace {

// A node that has become a transform by cosines or by sines, and the filters it was.
struct HalfTransform {
  size_t node;
  dense::Waves waves;
  const graph::Tensor* weights;
};

// What both of two nodes are by: cosines and sines of the same window.
std::optional<dense::FourierFilters> filters_of_both(const Graph& graph, const HalfTransform& a,
                                                     const HalfTransform& b) {
  const Node &x = graph.nodes[a.node], &y = graph.nodes[b.node];
  const auto same = [&](const char* name) {
    return std::ranges::equal(x.attributes.integers(name), y.attributes.integers(name));
  };
  if (a.waves == b.waves || x.inputs[0] != y.inputs[0] || !same("weight_shape") || !same("strides"))
    return std::nullopt;
  const auto shape = x.attributes.integers("weight_shape");
  std::vector<float> filters;
  for (const dense::Waves waves : {dense::Waves::cosines, dense::Waves::sines}) {
    const std::span<const float> half = (a.waves == waves ? a : b).weights->span<float>();
    filters.insert(filters.end(), half.begin(), half.end());
  }
  return dense::fourier_filters(2 * static_cast<size_t>(shape[0]), static_cast<size_t>(shape[2]),
                                filters.data());
}

Status become_transform(Graph& graph, Node& node, const dense::FourierFilters& filters) {
  const auto floats = static_cast<int64_t>(dense::fourier_table_floats(filters.window.size()));
  HOLOGRAM_TRY(graph::Tensor table, graph::Tensor::allocate(DType::f32, {floats}));
  dense::make_fourier_table(filters, table.as<float>());
  graph::Attributes attributes;
  for (const char* name : {"weight_shape", "strides"})
    if (const graph::Attribute* a = node.attributes.find(name)) attributes.put(*a);
  attributes.set("waves", static_cast<int64_t>(filters.waves));
  attributes.set("sine", int64_t{filters.sine < 0 ? -1 : 1});
  node.op = "Fourier";
  node.inputs = {node.inputs[0],
                 graph.add_constant(std::move(table), graph.value(node.inputs[1]).name)};
  node.attributes = std::move(attributes);
  return {};
}

}  // namespace

Result<size_t> use_fourier_transforms(Graph& graph) {
  size_t found = 0;
  std::vector<HalfTransform> halves;
  std::vector<size_t> joined;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    for (graph::Subgraph& sub : node.subgraphs) {
      HOLOGRAM_TRY(const size_t inside, use_fourier_transforms(*sub.graph));
      found += inside;
    }
    if (node.domain != "hologram" || node.op != "Conv" || !is_signal_filter(node) ||
        !is_plain(node) || graph.value(node.outputs[0]).type.dtype != DType::f32)
      continue;
    const graph::Tensor* weights = constant_of(graph, node.inputs[1]);
    if (!weights || weights->dtype != DType::f32) continue;
    const auto shape = node.attributes.integers("weight_shape");
    const auto filters = dense::fourier_filters(
        static_cast<size_t>(shape[0]), static_cast<size_t>(shape[2]), weights->as<float>());
    if (!filters) continue;
    ++found;
    const HalfTransform half{i, filters->waves, weights};
    // Models that have the real and the imaginary parts apart ask for every transform twice.
    bool is_second = false;
    for (auto other = halves.begin(); other != halves.end() && !is_second; ++other) {
      const auto both = filters_of_both(graph, *other, half);
      if (!both) continue;
      Node& first = graph.nodes[other->node];
      HOLOGRAM_CHECK(become_transform(graph, first, *both));
      first.outputs.push_back(node.outputs[0]);
      if (half.waves == dense::Waves::cosines) std::swap(first.outputs[0], first.outputs[1]);
      joined.push_back(i);
      halves.erase(other);
      is_second = true;
    }
    if (is_second) continue;
    HOLOGRAM_CHECK(become_transform(graph, node, *filters));
    if (filters->waves != dense::Waves::both) halves.push_back(half);
  }
  for (size_t i = joined.size(); i-- > 0;)
    graph.nodes.erase(graph.nodes.begin() + static_cast<ptrdiff_t>(joined[i]));
  return found;
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
    const auto even = dense::even_filters(static_cast<size_t>(shape[0]),
                                          static_cast<size_t>(shape[2]), weights->as<float>());
    if (!even) continue;
    node.attributes.set("mirrored", int64_t{1});
    node.attributes.set("even", static_cast<int64_t>(*even));
    ++folded;
  }
  return folded;
}

}  // namespace hologram::compiler
