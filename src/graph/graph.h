// Graph: a tensor program. Nodes in an order in which each reads only what came before it.
//
// A graph owns its values and nodes; constants are views with a share in what they look at, so
// weights stay in the mapped file. A node's subgraphs (If, Loop, Scan) read values of the graph
// around them only through `captures`. Not safe for use by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/kernels/attribute.h"
#include "graph/type.h"
#include "support/result.h"

namespace hologram::graph {

using kernels::Attribute;
using kernels::Attributes;
using kernels::Dims;
using kernels::Tensor;

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = 0xffffffff;  // an input or output left out

class Graph;

struct ValueInfo {
  std::string name;
  ValueType type;
  std::optional<Tensor> constant;
  // The integers of a small integer tensor, where they are known as dimensions: what makes
  // Shape -> Gather -> Concat -> Reshape keep its symbols.
  std::optional<std::vector<Dim>> contents;
};

struct Subgraph {
  std::string name;  // the attribute: "body", "then_branch"
  std::unique_ptr<Graph> graph;
};

struct Node {
  std::string op;
  std::string domain;  // "" is ai.onnx
  std::string name;
  int opset = 0;  // the version of the domain that the model named; for messages
  std::vector<ValueId> inputs, outputs;
  Attributes attributes;
  std::vector<Subgraph> subgraphs;

  ValueId input(size_t index) const { return index < inputs.size() ? inputs[index] : kNoValue; }
  Graph* subgraph(std::string_view name) const {
    for (const Subgraph& s : subgraphs)
      if (s.name == name) return s.graph.get();
    return nullptr;
  }
  // "node 'conv1' (Conv, opset 13)"
  std::string describe() const;
};

class NodeBuilder;

class Graph {
 public:
  struct Capture {
    ValueId outer, inner;
  };

  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;  // one an output: passes may replace the value behind it
  std::vector<Capture> captures;

  ValueInfo& value(ValueId id) { return values_[id]; }
  const ValueInfo& value(ValueId id) const { return values_[id]; }
  size_t value_count() const { return values_.size(); }

  ValueId add_value(std::string name, ValueType type = {});
  ValueId add_input(std::string name, ValueType type);
  // A constant is typed and shaped by its tensor.
  ValueId add_constant(Tensor tensor, std::string name = "");
  template <typename T>
  ValueId constant(T scalar) {
    return add_constant(*Tensor::from<T>({}, std::span<const T>(&scalar, 1)));
  }
  ValueId constant(std::vector<int64_t> vector) {
    return add_constant(*Tensor::from<int64_t>({static_cast<int64_t>(vector.size())}, vector));
  }
  void mark_constant(ValueId id, Tensor tensor);

  // g.op("Add").input(a).input(b).name("sum"): a new node at the end, typed at once. Mistakes are
  // remembered: see status().
  NodeBuilder op(std::string op, std::string domain = "");
  // The first mistake made through op().
  const Status& status() const { return status_; }
  void note(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }

  // One line a node.
  std::string to_text() const;
  // Graphviz.
  std::string to_dot() const;

 private:
  std::vector<ValueInfo> values_;
  Status status_;
};

// Writes one node. The node is added when its first output is asked for, or at the end.
class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string op, std::string domain) : graph_(graph) {
    node_.op = std::move(op);
    node_.domain = std::move(domain);
  }
  ~NodeBuilder() { add(); }
  NodeBuilder(const NodeBuilder&) = delete;

  NodeBuilder& input(ValueId value) {
    node_.inputs.push_back(value);
    return *this;
  }
  NodeBuilder& inputs(std::span<const ValueId> values) {
    node_.inputs.insert(node_.inputs.end(), values.begin(), values.end());
    return *this;
  }
  NodeBuilder& attribute(std::string name, int64_t value) {
    node_.attributes.set(std::move(name), value);
    return *this;
  }
  NodeBuilder& attribute(std::string name, int value) {
    return attribute(std::move(name), int64_t{value});
  }
  NodeBuilder& attribute(std::string name, double value) {
    node_.attributes.set(std::move(name), value);
    return *this;
  }
  NodeBuilder& attribute(std::string name, const char* value) {
    node_.attributes.set(std::move(name), std::string(value));
    return *this;
  }
  NodeBuilder& attribute(std::string name, std::vector<int64_t> value) {
    node_.attributes.set(std::move(name), std::move(value));
    return *this;
  }
  NodeBuilder& attributes(const Attributes& all) {
    for (const Attribute& a : all) node_.attributes.put(a);
    return *this;
  }
  NodeBuilder& name(std::string name) {
    node_.name = std::move(name);
    return *this;
  }
  // How many outputs the node has; 1 unless said.
  NodeBuilder& outputs(size_t count) {
    output_count_ = count;
    return *this;
  }

  ValueId output(size_t index = 0) {
    add();
    return ids_[index];
  }
  operator ValueId() { return output(); }

 private:
  void add();
  Graph& graph_;
  Node node_;
  size_t output_count_ = 1;
  std::vector<ValueId> ids_;
};

}  // namespace hologram::graph
