#include "graph/verify.h"

namespace hologram::graph {

Status verify(const Graph& graph) {
  std::vector<bool> written(graph.value_count(), false);
  auto write = [&](ValueId id) -> Status {
    if (id >= graph.value_count())
      return fail(ErrorCode::verify_error, "value {} does not exist", id);
    if (written[id])
      return fail(ErrorCode::verify_error, "'{}' is written twice", graph.value(id).name);
    written[id] = true;
    return {};
  };
  auto read = [&](ValueId id) -> Status {
    if (id >= graph.value_count())
      return fail(ErrorCode::verify_error, "value {} does not exist", id);
    if (!written[id] && !graph.value(id).constant)
      return fail(ErrorCode::verify_error, "'{}' is read before it is written",
                  graph.value(id).name);
    return {};
  };
  for (ValueId id : graph.inputs) HOLOGRAM_CHECK(write(id));
  for (const Graph::Capture& c : graph.captures) HOLOGRAM_CHECK(write(c.inner));
  for (const Node& node : graph.nodes) {
    auto check = [&]() -> Status {
      for (ValueId id : node.inputs)
        if (id != kNoValue) HOLOGRAM_CHECK(read(id));
      for (const Subgraph& sub : node.subgraphs) {
        for (const Graph::Capture& c : sub.graph->captures) HOLOGRAM_CHECK(read(c.outer));
        HOLOGRAM_CHECK(verify(*sub.graph));
      }
      for (ValueId id : node.outputs) HOLOGRAM_CHECK(write(id));
      return {};
    };
    HOLOGRAM_CHECK(in_context(check(), [&] { return node.describe(); }));
  }
  for (ValueId id : graph.outputs) HOLOGRAM_CHECK(read(id));
  return {};
}

}  // namespace hologram::graph
