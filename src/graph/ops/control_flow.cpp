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

std::optional<Shape> without_axis(const Shape& shape, size_t axis) {
  std::vector<Dim> dims = shape.dims();
  dims.erase(dims.begin() + axis);
  return Shape(std::move(dims));
}

// An element of a list attribute; 0 where the attribute is absent.
Result<int64_t> listed(InferContext& c, const char* name, size_t index, size_t count) {
  if (!c.attributes().has(name)) return 0;
  const auto list = c.integers(name);
  if (list.size() != count)
    return fail(ErrorCode::invalid_argument, "{} has {} entries; {} expected", name, list.size(),
                count);
  return list[index];
}

// Scan, and Scan of opset 8 (`batched`): there input 0 holds lengths, axis 0 of every tensor is
// the batch and axis 1 of what is scanned the sequence.
Status scan(InferContext& c) {
  HOLOGRAM_TRY(Graph * inner, body(c, "body"));
  const bool batched = c.integer("batched") != 0;
  const size_t first = batched ? 1 : 0;
  const int64_t wanted = c.integer("num_scan_inputs");
  if (c.input_count() < first || inner->inputs.size() != c.input_count() - first || wanted < 1 ||
      static_cast<size_t>(wanted) > inner->inputs.size())
    return fail(ErrorCode::corrupt, "{} inputs, a body with {} and num_scan_inputs {}",
                c.input_count(), inner->inputs.size(), wanted);
  const size_t scanned = static_cast<size_t>(wanted), states = inner->inputs.size() - scanned;
  if (inner->outputs.size() < states || c.output_count() > inner->outputs.size())
    return fail(ErrorCode::corrupt, "a body with {} outputs for {} states and a node with {}",
                inner->outputs.size(), states, c.output_count());
  Dim length = unknown_dim();
  for (size_t i = 0; i < inner->inputs.size(); ++i) {
    if (!c.has(first + i) || !c.type(first + i).is_tensor())
      return fail(ErrorCode::invalid_argument, "input {} must be a tensor", first + i);
    ValueType type = c.type(first + i);
    if (batched && type.shape) {
      if (type.shape->rank() < (i < states ? 1 : 2))
        return fail(ErrorCode::shape_mismatch, "input {} is {}; a batch axis is expected",
                    first + i, type.to_string());
      type.shape = without_axis(*type.shape, 0);
    }
    ValueType& declared = inner->value(inner->inputs[i]).type;
    if (i < states) {
      declared = carried_type(declared, type);
      continue;
    }
    HOLOGRAM_TRY(const int64_t direction, listed(c, "scan_input_directions", i - states, scanned));
    if (direction != 0 && direction != 1)
      return fail(ErrorCode::invalid_argument, "scan_input_directions {}; 0 or 1", direction);
    HOLOGRAM_TRY(const int64_t given, listed(c, "scan_input_axes", i - states, scanned));
    if (type.shape) {
      HOLOGRAM_TRY(const size_t axis, c.axis(given, type.shape->rank()));
      length = (*type.shape)[axis];
      type.shape = without_axis(*type.shape, axis);
    }
    declared = type;
  }
  HOLOGRAM_CHECK(resolve(*inner));
  const size_t collected = inner->outputs.size() - states;
  for (size_t i = 0; i < c.output_count(); ++i) {
    const ValueType& type = output_type(*inner, i);
    if (!type.is_tensor())
      return fail(ErrorCode::type_mismatch, "output {} of the body is {}", i, type.to_string());
    if (i < states) {
      const ValueType& start = c.type(first + i);
      if (type.dtype != start.dtype)
        return fail(ErrorCode::type_mismatch, "state {} starts as {} and becomes {}", i,
                    start.to_string(), type.to_string());
      c.set_type(i, batched ? ValueType::tensor(type.dtype) : *common_type(type, start));
      continue;
    }
    HOLOGRAM_TRY(const int64_t direction,
                 listed(c, "scan_output_directions", i - states, collected));
    if (direction != 0 && direction != 1)
      return fail(ErrorCode::invalid_argument, "scan_output_directions {}; 0 or 1", direction);
    HOLOGRAM_TRY(const int64_t given, listed(c, "scan_output_axes", i - states, collected));
    c.set_type(i, ValueType::tensor(type.dtype));
    if (!type.shape || batched) continue;
    std::vector<Dim> dims = type.shape->dims();
    HOLOGRAM_TRY(const size_t axis, c.axis(given, dims.size() + 1));
    dims.insert(dims.begin() + axis, length);
    c.set_shape(i, Shape(std::move(dims)));
  }
  return {};
}

// What the body sees of an input: an element of a sequence, or the tensor.
Status sequence_map(InferContext& c) {
  HOLOGRAM_TRY(Graph * inner, body(c, "body"));
  if (inner->inputs.size() != c.input_count() || inner->outputs.size() < c.output_count())
    return fail(ErrorCode::corrupt, "a body of {} inputs and {} outputs for a node of {} and {}",
                inner->inputs.size(), inner->outputs.size(), c.input_count(), c.output_count());
  if (c.type(0).kind != ValueType::Kind::sequence)
    return fail(ErrorCode::type_mismatch, "input 0 must be a sequence, not {}",
                c.type(0).to_string());
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has(i)) return fail(ErrorCode::invalid_argument, "input {} is missing", i);
    const ValueType& type = c.type(i);
    inner->value(inner->inputs[i]).type =
        type.kind == ValueType::Kind::sequence ? *type.element : type;
  }
  HOLOGRAM_CHECK(resolve(*inner));
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!output_type(*inner, i).is_tensor())
      return fail(ErrorCode::type_mismatch, "output {} of the body is {}", i,
                  output_type(*inner, i).to_string());
    // Elements of a sequence may differ in shape.
    c.set_type(i, ValueType::sequence(ValueType::tensor(output_type(*inner, i).dtype)));
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
  table.add("Scan")
      .signature("inputs:V...? -> outputs:V...")
      .attributes(
          "num_scan_inputs:i, scan_input_axes:is, scan_input_directions:is, scan_output_axes:is, "
          "scan_output_directions:is, batched:i")
      .infer(scan)
      .control_flow();
  table.add("SequenceMap")
      .signature("input_sequence:V, additional_inputs:V...? -> out_sequence:V...")
      .infer(sequence_map)
      .control_flow();
}

}  // namespace hologram::graph::ops
