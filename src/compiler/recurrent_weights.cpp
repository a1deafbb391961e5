#include "compiler/recurrent_weights.h"

#include "graph/passes/value_uses.h"

namespace hologram::compiler {

std::optional<RecurrentWeights> recurrent_weights(const graph::Graph& graph,
                                                  const graph::Node& node) {
  if (!node.domain.empty() || (node.op != "LSTM" && node.op != "GRU")) return {};
  const graph::Tensor *w = constant_of(graph, node.inputs[1]),
                      *r = constant_of(graph, node.inputs[2]);
  const graph::Attributes& a = node.attributes;
  const int64_t gates = node.op == "LSTM" ? 4 : 3;
  const std::string direction(a.text("direction", "forward"));
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = a.integer("layout") != 0;
  if (!w || !r || w->dtype != DType::f32 || r->dtype != DType::f32 || w->dims.rank() != 3 ||
      r->dims.rank() != 3 || w->count() == 0 || a.has("activations") || a.has("clip") ||
      a.integer("input_forget") != 0 || a.integer("quantise_state") != 0 ||
      (batch_first && directions == 2))
    return {};
  const int64_t hidden = r->dims[2], inputs = w->dims[2];
  if (!(w->dims == kernels::Dims{directions, gates * hidden, inputs}) ||
      !(r->dims == kernels::Dims{directions, gates * hidden, hidden}) ||
      a.integer("hidden_size", hidden) != hidden ||
      (direction != "forward" && direction != "reverse" && directions == 1))
    return {};
  const auto& shape = graph.value(node.inputs[0]).type.shape;
  const auto size = [&](size_t axis) {
    return shape && shape->rank() == 3 && !(*shape)[axis].is_symbol() ? (*shape)[axis].value() : 0;
  };
  return RecurrentWeights{
      gates, directions, hidden, inputs, size(batch_first ? 1 : 0), size(batch_first ? 0 : 1)};
}

}  // namespace hologram::compiler
