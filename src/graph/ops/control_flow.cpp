// Operators whose bodies are graphs.
#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/passes/resolve.h"

namespace hologram::graph::ops {
namespace {

Result<Graph*> body(InferContext& c, const char* name) {
  Graph* graph = c.node().subgraph(name);
  if (!graph) return fail(ErrorCode::corrupt, "attribute '{}' is missing", name);
  return graph;
}

const ValueType& output_type(const Graph& graph, size_t index) {
  return graph.value(graph.outputs[index]).type;
}

Status if_(InferContext& c) {
  HOLOGRAM_TRY(Graph * then_branch, body(c, "then_branch"));
  HOLOGRAM_TRY(Graph * else_branch, body(c, "else_branch"));
  for (Graph* branch : {then_branch, else_branch}) {
    HOLOGRAM_CHECK(resolve(*branch));
    if (!branch->inputs.empty()) return fail(ErrorCode::corrupt, "a branch with inputs");
    if (branch->outputs.size() < c.output_count())
      return fail(ErrorCode::corrupt, "a branch with {} outputs where the node has {}",
                  branch->outputs.size(), c.output_count());
  }
  for (size_t i = 0; i < c.output_count(); ++i) {
    const ValueType &a = output_type(*then_branch, i), &b = output_type(*else_branch, i);
    auto type = common_type(a, b);
    // A branch may give the element where the other gives an optional.
    if (!type && a.kind == ValueType::Kind::optional && same_types(*a.element, b)) type = a;
    if (!type && b.kind == ValueType::Kind::optional && same_types(*b.element, a)) type = b;
    if (!type)
      return fail(ErrorCode::type_mismatch, "output {} is {} in one branch and {} in the other", i,
                  a.to_string(), b.to_string());
    c.set_type(i, *type);
  }
  return {};
}

// What is known of a carried value in every iteration: what the body declares, where it agrees.
ValueType carried_type(const ValueType& declared, const ValueType& initial) {
  if (!initial.is_tensor() || !declared.is_tensor() || !declared.shape || !initial.shape) {
    ValueType type = initial;
    if (type.is_tensor()) type.shape.reset();
    return type;
  }
  auto common = common_type(declared, initial);
  return common ? *common : ValueType::tensor(initial.dtype);
}

Status loop(InferContext& c) {
  HOLOGRAM_TRY(Graph * inner, body(c, "body"));
  if (inner->inputs.size() < 2)
    return fail(ErrorCode::corrupt, "a body without counter and condition");
  const size_t carried = inner->inputs.size() - 2;
  if (inner->outputs.size() < 1 + carried)
    return fail(ErrorCode::corrupt, "a body with {} outputs", inner->outputs.size());
  inner->value(inner->inputs[0]).type = ValueType::tensor(DType::i64, Shape());
  inner->value(inner->inputs[1]).type = ValueType::tensor(DType::boolean, Shape());
  for (size_t i = 0; i < carried; ++i) {
    if (!c.has(2 + i)) return fail(ErrorCode::invalid_argument, "carried value {} has no start", i);
    ValueType& type = inner->value(inner->inputs[2 + i]).type;
    type = carried_type(type, c.type(2 + i));
  }
  HOLOGRAM_CHECK(resolve(*inner));
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (1 + i >= inner->outputs.size())
      return fail(ErrorCode::corrupt, "more outputs than the body gives");
    ValueType type = output_type(*inner, 1 + i);
    if (i < carried) {
      // After no iteration the result is the start.
      auto common = common_type(type, c.type(2 + i));
      if (!common && c.type(2 + i).kind == ValueType::Kind::optional) common = c.type(2 + i);
      if (!common)
        return fail(ErrorCode::type_mismatch, "carried value {} starts as {} and becomes {}", i,
                    c.type(2 + i).to_string(), type.to_string());
      c.set_type(i, *common);
    } else if (type.shape) {
      std::vector<Dim> dims = type.shape->dims();
      dims.insert(dims.begin(), unknown_dim());
      c.set_type(i, ValueType::tensor(type.dtype, Shape(std::move(dims))));
    } else {
      c.set_type(i, ValueType::tensor(type.dtype));
    }
  }
  return {};
}

}  // namespace

void add_control_flow(OperatorTable& table) {
  table.add("If").signature("cond:bool -> outputs:V...").infer(if_).control_flow();
  table.add("Loop")
      .signature("M:i64?, cond:bool?, v_initial:V...? -> results:V...")
      .infer(loop)
      .control_flow();
}

}  // namespace hologram::graph::ops
