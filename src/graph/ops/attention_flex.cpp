#include "graph/ops/attention_flex.h"

#include <cmath>
#include <unordered_map>

namespace hologram::graph::ops {
namespace {

// Writes the nodes of a graph of one input and one output into the graph around it.
Result<ValueId> inlined(ComposeContext& c, std::string_view name, ValueId argument) {
  const Graph* body = c.node.subgraph(name);
  if (!body) return argument;
  if (body->inputs.size() != 1 || body->outputs.size() != 1)
    return fail(ErrorCode::invalid_argument,
                "{} has {} inputs and {} outputs; one of each expected", name, body->inputs.size(),
                body->outputs.size());
  std::unordered_map<ValueId, ValueId> outside = {{body->inputs[0], argument}};
  for (const Graph::Capture& capture : body->captures) outside[capture.inner] = capture.outer;
  auto value = [&](ValueId id) {
    if (id == kNoValue) return kNoValue;
    const auto known = outside.find(id);
    if (known != outside.end()) return known->second;
    const auto& constant = body->value(id).constant;
    return outside[id] = constant ? c.graph.add_constant(*constant) : kNoValue;
  };
  for (const Node& node : body->nodes) {
    if (!node.subgraphs.empty())
      return fail(ErrorCode::unsupported, "{} contains {}; supported: operators without graphs",
                  name, node.describe());
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(value(id));
      if (id != kNoValue && inputs.back() == kNoValue)
        return fail(ErrorCode::corrupt, "{} reads a value that nothing makes", name);
    }
    NodeBuilder copy(c.graph, node.op, node.domain);
    copy.inputs(inputs).attributes(node.attributes).name(node.name).outputs(node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) outside[node.outputs[i]] = copy.output(i);
  }
  const ValueId result = value(body->outputs[0]);
  if (result == kNoValue) return fail(ErrorCode::corrupt, "{} has no result", name);
  return result;
}

// Every head of keys or values as often as queries share it.
Result<ValueId> repeated(ComposeContext& c, ValueId heads, const Shape& shape, int64_t times) {
  if (times == 1) return heads;
  if (shape[3].is_symbol())
    return fail(ErrorCode::unsupported, "shared heads of unknown size in {}", shape.to_string());
  const ValueId apart =
      c.op("Unsqueeze").input(heads).input(c.graph.constant(std::vector<int64_t>{2}));
  const ValueId expanded =
      c.op("Expand").input(apart).input(c.graph.constant(std::vector<int64_t>{1, 1, times, 1, 1}));
  return c.op("Reshape")
      .input(expanded)
      .input(
          c.graph.constant(std::vector<int64_t>{0, shape[1].value() * times, -1, shape[3].value()}))
      .output();
}

}  // namespace

Status flex_attention_shape(InferContext& c) {
  const Shape *q = c.shape(0), *k = c.shape(1), *v = c.shape(2);
  if (!q || !k || !v) return {};
  if (q->rank() != 4 || k->rank() != 4 || v->rank() != 4)
    return fail(ErrorCode::shape_mismatch, "Q {}, K {} and V {}; rank 4 expected", q->to_string(),
                k->to_string(), v->to_string());
  c.set_shape(0, Shape(std::vector<Dim>{(*q)[0], (*q)[1], (*q)[2], (*v)[3]}));
  return {};
}

Result<std::vector<ValueId>> flex_attention(ComposeContext& c) {
  // Copies: writing nodes moves the values.
  const auto q = c.type(0).shape, k = c.type(1).shape, v = c.type(2).shape;
  if (!q || !k || !v || (*q)[1].is_symbol() || (*k)[1].is_symbol() || (*v)[1] != (*k)[1] ||
      (*q)[3].is_symbol())
    return fail(
        ErrorCode::unsupported,
        "Q, K and V of unknown or different heads; supported: known numbers of heads, and a "
        "known size of Q's");
  const int64_t q_heads = (*q)[1].value(), kv_heads = (*k)[1].value(), size = (*q)[3].value();
  if (kv_heads < 1 || q_heads % kv_heads != 0 || size < 1)
    return fail(ErrorCode::shape_mismatch, "{} heads of Q and {} of K and V", q_heads, kv_heads);
  const DType type = c.type(0).dtype;
  const DType usual = type == DType::f64 ? DType::f64 : DType::f32;
  const DType precision = dtype_from_code(static_cast<uint8_t>(c.attributes().integer(
                                              "softmax_precision", static_cast<int64_t>(usual))))
                              .value_or(usual);
  if (!kFloats.has(precision))
    return fail(ErrorCode::unsupported, "softmax_precision {}; supported: {}", name_of(precision),
                kFloats.to_string());
  auto cast = [&](ValueId value, DType to) {
    return c.graph.value(value).type.dtype == to ? value : c.cast(value, to);
  };
  HOLOGRAM_TRY(const ValueId keys, repeated(c, c.in(1), *k, q_heads / kv_heads));
  HOLOGRAM_TRY(const ValueId values, repeated(c, c.in(2), *v, q_heads / kv_heads));
  const double scale = c.attributes().number("scale", 1 / std::sqrt(static_cast<double>(size)));
  const ValueId root = c.number(type, std::sqrt(static_cast<float>(scale)));
  const ValueId queries = c.op("Mul").input(c.in(0)).input(root);
  const ValueId scaled = c.op("Mul").input(keys).input(root);
  const ValueId turned =
      c.op("Transpose").input(scaled).attribute("perm", std::vector<int64_t>{0, 1, 3, 2});
  const ValueId product = c.op("MatMul").input(queries).input(turned);
  HOLOGRAM_TRY(const ValueId scores, inlined(c, "score_mod", cast(product, precision)));
  const ValueId probabilities = c.op("Softmax").input(scores).attribute("axis", -1);
  HOLOGRAM_TRY(const ValueId weights, inlined(c, "prob_mod", probabilities));
  const ValueId y = c.op("MatMul").input(weights).input(cast(values, precision));
  return std::vector<ValueId>{cast(y, type)};
}

}  // namespace hologram::graph::ops
