// Inference: the types and shapes of a node's outputs from those of its inputs.
#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/kernels/kernel.h"
#include "graph/dim.h"
#include "graph/operator.h"

namespace hologram::graph {

// What an operator's infer function sees. Element types given by the signature are already set;
// the function adds shapes where it can. A shape it does not know is simply not set: the kernel
// works it out while running.
class InferContext {
 public:
  InferContext(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  const Node& node() const { return node_; }
  Graph& graph() const { return graph_; }
  const Attributes& attributes() const { return node_.attributes; }
  int64_t integer(std::string_view name, int64_t fallback = 0) const {
    return attributes().integer(name, fallback);
  }
  std::string_view text(std::string_view name, std::string_view fallback = "") const {
    return attributes().text(name, fallback);
  }
  std::span<const int64_t> integers(std::string_view name) const {
    return attributes().integers(name);
  }

  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t index) const { return node_.input(index) != kNoValue; }
  const ValueType& type(size_t index) const { return graph_.value(node_.inputs[index]).type; }
  DType dtype(size_t index) const { return type(index).dtype; }
  // nullptr when the input is left out or nothing is known.
  const Shape* shape(size_t index) const {
    if (!has(index)) return nullptr;
    const std::optional<Shape>& shape = type(index).shape;
    return shape ? &*shape : nullptr;
  }
  // nullptr when the input is not a constant.
  const Tensor* constant(size_t index) const {
    if (!has(index)) return nullptr;
    const auto& constant = graph_.value(node_.inputs[index]).constant;
    return constant ? &*constant : nullptr;
  }
  // The integers of a shape-like input as dimensions, where known.
  const std::vector<Dim>* contents(size_t index) const {
    if (!has(index)) return nullptr;
    const auto& contents = graph_.value(node_.inputs[index]).contents;
    return contents ? &*contents : nullptr;
  }
  // The same where all of them are numbers.
  std::optional<std::vector<int64_t>> numbers(size_t index) const;
  // An attribute or a number as an axis; negative counts from the end.
  Result<size_t> axis(int64_t value, size_t rank) const {
    return kernels::normalise_axis(value, rank);
  }

  // Numbers that no tensor can have as dimensions are left to the kernel to refuse; nothing that
  // follows multiplies them.
  void set_shape(size_t output, Shape shape);
  void set_dtype(size_t output, DType dtype) {
    if (wants(output)) out(output).type = ValueType::tensor(dtype, out(output).type.shape);
  }
  void set_type(size_t output, ValueType type) {
    if (wants(output)) out(output).type = std::move(type);
  }
  void set_contents(size_t output, std::vector<Dim> contents) {
    if (wants(output)) out(output).contents = std::move(contents);
  }
  bool wants(size_t output) const {
    return output < node_.outputs.size() && node_.outputs[output] != kNoValue;
  }

 private:
  ValueInfo& out(size_t output) const { return graph_.value(node_.outputs[output]); }
  Graph& graph_;
  Node& node_;
};

// Checks a node against its entry and types its outputs. Errors name the node.
Status infer_node(Graph& graph, Node& node);

// Shape functions many operators share.
Status same_shape_as_first(InferContext& c);   // every output has the first input's shape
Status broadcast_all_inputs(InferContext& c);  // output 0 is all inputs broadcast
Status no_shape(InferContext& c);              // left to the kernel

}  // namespace hologram::graph
