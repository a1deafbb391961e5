#include "compiler/precision.h"

#include "backends/cpu/dense/gemm_narrow.h"
#include "graph/passes/value_uses.h"

namespace hologram::compiler {
namespace {

namespace dense = backends::dense;
using graph::Graph;
using graph::Node;

// The sum of fewer channels would be mostly padding.
constexpr int64_t kFewChannels = 16;

bool has_narrow_kernel(const Node& node, Precision precision) {
  if (node.op == "MatMul") return true;
  if (node.op != "Conv" || node.attributes.integer("group", 1) != 1) return false;
  if (node.attributes.integer("blocked_input") == 0 ||
      node.attributes.integer("blocked_output") == 0)
    return false;
  if (node.attributes.integers("weight_shape")[1] < kFewChannels) return false;
  // Winograd saves more than two parts cost, and than one part saves without tiles.
  const bool winograd = node.attributes.integer("algorithm") != 0;
  return !winograd || (precision == Precision::bf16 && dense::has_bf16_tiles());
}

}  // namespace

Result<Precision> parse_precision(std::string_view name) {
  if (name == "f32") return Precision::f32;
  if (name == "fast") return Precision::fast;
  if (name == "bf16") return Precision::bf16;
  for (std::string_view later : {"f16", "int8", "int4", "table"})
    if (name == later)
      return fail(ErrorCode::unsupported,
                  "precision '{}' is not available yet; there are f32, fast and bf16", name);
  return fail(ErrorCode::invalid_argument, "no precision '{}'; there are f32, fast and bf16", name);
}

void choose_precision(Graph& graph, Precision precision) {
  if (precision == Precision::f32) return;
  // Two parts are three products: they pay in tiles only.
  if (precision == Precision::fast && !dense::has_bf16_tiles()) return;
  for (Node& node : graph.nodes) {
    for (graph::Subgraph& sub : node.subgraphs) choose_precision(*sub.graph, precision);
    if (node.domain != "hologram" || !has_narrow_kernel(node, precision)) continue;
    const graph::Tensor* weights = constant_of(graph, node.inputs[1]);
    if (!weights || weights->dtype != DType::f32) continue;
    node.attributes.set("parts", int64_t{precision == Precision::fast ? 2 : 1});
    if (node.op == "Conv") node.attributes.set("algorithm", int64_t{0});
  }
}

}  // namespace hologram::compiler
