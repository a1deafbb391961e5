// Nodes that passes make of several others.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

// The body was typed when it was made; its inputs and outputs are the node's.
Status pointwise(InferContext& c) {
  const Graph* body = c.node().subgraph("body");
  if (!body) return fail(ErrorCode::corrupt, "attribute 'body' is missing");
  if (body->inputs.size() != c.input_count() || body->outputs.size() != c.output_count())
    return fail(ErrorCode::corrupt, "a body of {} inputs and {} outputs for a node of {} and {}",
                body->inputs.size(), body->outputs.size(), c.input_count(), c.output_count());
  for (size_t i = 0; i < c.output_count(); ++i) c.set_type(i, body->value(body->outputs[i]).type);
  return {};
}

}  // namespace

void add_fused(OperatorTable& table) {
  table.add("Pointwise", "hologram")
      .signature("inputs:V... -> outputs:V...")
      .infer(pointwise)
      .pointwise_body();
}

}  // namespace hologram::graph::ops
