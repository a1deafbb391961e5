#include "compiler/exact_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "backends/cpu/dense/conv.h"
#include "compiler/signal_filters.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

using graph::Graph;
using graph::Node;
using Algorithm = backends::dense::ConvAlgorithm;

Algorithm algorithm_of(const Node& node) {
  return static_cast<Algorithm>(node.attributes.integer("algorithm"));
}

bool makes_one_pixel(const Graph& graph, const Node& node) {
  const Shape* y = graph::shape_of(graph, node.outputs[0]);
  const size_t spatial = node.attributes.integers("weight_shape").size() - 2;
  if (!y || y->rank() < 2 + spatial) return false;
  return std::ranges::all_of(std::views::iota(size_t{2}, 2 + spatial), [&](size_t axis) {
    return !(*y)[axis].is_symbol() && (*y)[axis].value() == 1;
  });
}

bool can_be_exact(const Graph& graph, const Node& node) {
  if (node.domain != "hologram" || node.op != "Conv" || is_signal_filter(node)) return false;
  const graph::Tensor* weights = constant_of(graph, node.inputs[1]);
  return weights && weights->dtype == DType::f32 && graph::is_f32(graph, node.inputs[0]) &&
         algorithm_of(node) != Algorithm::ordered && !makes_one_pixel(graph, node);
}

// Depthwise ones, and of one algorithm and kernel.
std::string kind_of(const Node& node) {
  std::string kind = node.attributes.integer("group", 1) == 1 ? "Conv" : "grouped Conv";
  if (algorithm_of(node) == Algorithm::winograd) kind += " by Winograd";
  for (const int64_t size : node.attributes.integers("weight_shape").subspan(2))
    kind += fmt::format(" {}", size);
  return kind;
}

void choose(Graph& graph, const std::vector<uint8_t>& chosen, PrecisionChoice& choice) {
  for (Node& node : graph.nodes) {
    for (graph::Subgraph& sub : node.subgraphs) choose(*sub.graph, chosen, choice);
    if (can_be_exact(graph, node)) {
      const size_t step = choice.narrow++;
      choice.kinds.push_back(kind_of(node));
      choice.same_grades.push_back({0, 1});
      if (step < chosen.size() && chosen[step] != 0) {
        node.attributes.set("exact", int64_t{1});
        node.attributes.set("algorithm", static_cast<int64_t>(Algorithm::direct));
        ++choice.widened;
      }
    }
    if (choice.narrow != 0) choice.product_of[node.name] = choice.narrow - 1;
  }
}

}  // namespace

size_t use_long_sums(Graph& graph) {
  size_t count = 0;
  for (Node& node : graph.nodes) {
    for (graph::Subgraph& sub : node.subgraphs) count += use_long_sums(*sub.graph);
    if (!can_be_exact(graph, node) || node.attributes.integers("weight_shape")[1] == 1) continue;
    node.attributes.set("long_sums", int64_t{1});
    ++count;
  }
  return count;
}

PrecisionChoice choose_exact_sums(Graph& graph, const std::vector<uint8_t>& chosen) {
  PrecisionChoice choice;
  choose(graph, chosen, choice);
  return choice;
}

}  // namespace hologram::compiler
