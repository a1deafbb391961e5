#include "graph/graph.h"

#include <algorithm>

#include "graph/infer.h"

namespace hologram::graph {

std::string Node::describe() const {
  std::string text = "node";
  if (!name.empty()) text += " '" + name + "'";
  text += " (" + (domain.empty() ? op : domain + "." + op);
  if (opset > 0) text += ", opset " + std::to_string(opset);
  return text + ")";
}

ValueId Graph::add_value(std::string name, ValueType type) {
  if (name.empty()) name = "%" + std::to_string(values_.size());
  values_.push_back({std::move(name), std::move(type), std::nullopt, std::nullopt});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::add_input(std::string name, ValueType type) {
  inputs.push_back(add_value(std::move(name), std::move(type)));
  return inputs.back();
}

ValueId Graph::add_constant(Tensor tensor, std::string name) {
  const ValueId id = add_value(std::move(name));
  mark_constant(id, std::move(tensor));
  return id;
}

void Graph::mark_constant(ValueId id, Tensor tensor) {
  ValueInfo& info = values_[id];
  info.type = ValueType::tensor(tensor.dtype, Shape(std::span<const int64_t>(tensor.dims)));
  info.contents.reset();
  if (tensor.dims.rank() <= 1 && tensor.count() <= 64 &&
      (tensor.dtype == DType::i64 || tensor.dtype == DType::i32)) {
    info.contents.emplace();
    for (int64_t i = 0; i < tensor.count(); ++i)
      info.contents->push_back(tensor.dtype == DType::i64 ? tensor.as<int64_t>()[i]
                                                          : tensor.as<int32_t>()[i]);
  }
  info.constant = std::move(tensor);
}

NodeBuilder Graph::op(std::string op, std::string domain) {
  return NodeBuilder(*this, std::move(op), std::move(domain));
}

void NodeBuilder::add() {
  if (!ids_.empty()) return;
  for (size_t i = 0; i < output_count_; ++i)
    ids_.push_back(graph_.add_value(node_.name.empty() || i > 0 ? "" : node_.name));
  node_.outputs = ids_;
  graph_.nodes.push_back(std::move(node_));
  graph_.note(infer_node(graph_, graph_.nodes.back()));
}

}  // namespace hologram::graph
