#include "graph/passes/value_uses.h"

namespace hologram::graph {

ValueUses::ValueUses(Graph& graph)
    : graph_(graph),
      maker_(graph.value_count(), kNone),
      reader_(graph.value_count(), kNone),
      count_(graph.value_count(), 0) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto read = [&](ValueId id, size_t reader) {
      if (id == kNoValue) return;
      ++count_[id];
      reader_[id] = reader;
    };
    for (ValueId id : node.inputs) read(id, i);
    for (const Subgraph& sub : node.subgraphs)
      for (const Graph::Capture& capture : sub.graph->captures) read(capture.outer, kNone);
    for (ValueId id : node.outputs)
      if (id != kNoValue) maker_[id] = i;
  }
  for (ValueId id : graph.outputs) {
    ++count_[id];
    reader_[id] = kNone;
  }
}

Node* ValueUses::maker(ValueId id) const {
  const size_t index = id == kNoValue ? kNone : maker_index(id);
  return index == kNone ? nullptr : &graph_.nodes[index];
}

Node* ValueUses::maker(ValueId id, std::string_view op, std::string_view domain) const {
  Node* node = maker(id);
  return node && node->op == op && node->domain == domain ? node : nullptr;
}

void ValueUses::remove(Node& node) { node = Node(); }

void ValueUses::sweep() {
  std::erase_if(graph_.nodes, [](const Node& node) { return removed(node); });
}

const Tensor* constant_of(const Graph& graph, ValueId id) {
  if (id == kNoValue) return nullptr;
  const auto& constant = graph.value(id).constant;
  return constant ? &*constant : nullptr;
}

std::optional<float> scalar_constant(const Graph& graph, ValueId id) {
  const Tensor* t = constant_of(graph, id);
  if (!t || t->dtype != DType::f32 || t->count() != 1) return std::nullopt;
  return *t->as<float>();
}

bool is_f32(const Graph& graph, ValueId id) {
  if (id == kNoValue) return false;
  const ValueType& type = graph.value(id).type;
  return type.is_tensor() && type.dtype == DType::f32;
}

const Shape* shape_of(const Graph& graph, ValueId id) {
  if (id == kNoValue) return nullptr;
  const ValueType& type = graph.value(id).type;
  return type.is_tensor() && type.shape ? &*type.shape : nullptr;
}

bool is_reshape(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.outputs.size() != 1) return false;
  const Shape *from = shape_of(graph, node.inputs[0]), *to = shape_of(graph, node.outputs[0]);
  if (!from || !to || !from->is_static() || !to->is_static()) return false;
  if (node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze" ||
      node.op == "Flatten" || node.op == "Identity")
    return true;
  if (node.op != "Transpose") return false;
  const auto perm = node.attributes.integers("perm");
  if (perm.size() != from->rank()) return false;
  int64_t last = -1;
  for (int64_t axis : perm) {
    if ((*from)[static_cast<size_t>(axis)].value() == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace hologram::graph
