// Older forms of operators -> the newest form, while a model is read.
//
// The operator table knows each operator in the form of the newest opset. A rewrite here turns a
// node of an older opset into that form; it sees the node alone (types are not known yet), so it
// may move attributes to inputs, rename, give defaults. What needs types becomes an operator of its
// own in the table (domain "hologram", such as SoftmaxCoerced) that is a composition.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.h"

namespace hologram::onnx {

struct CanonicalContext {
  graph::Graph& graph;
  graph::Node& node;

  int opset() const { return node.opset; }
  const graph::Attributes& attributes() const { return node.attributes; }
  bool has_input(size_t index) const { return node.input(index) != graph::kNoValue; }
  // Makes `value` input `index`, leaving out what lies between.
  void set_input(size_t index, graph::ValueId value);
  // A list or integer attribute becomes a constant i64 input; nothing when absent.
  void integers_to_input(std::string_view attribute, size_t index);
  // The same for a number; the input is f32.
  void number_to_input(std::string_view attribute, size_t index);
};

struct Rewrite {
  std::string_view op, domain;
  int before;  // applies to nodes of an opset older than this
  Status (*apply)(CanonicalContext&);
};

// Applies every rewrite of the node's operator that its opset is older than, in order.
Status canonicalise(graph::Graph& graph, graph::Node& node);

// The families; each file lists its own.
std::span<const Rewrite> activation_rewrites();
std::span<const Rewrite> arithmetic_rewrites();
std::span<const Rewrite> machine_learning_rewrites();
std::span<const Rewrite> movement_rewrites();
std::span<const Rewrite> network_rewrites();
std::span<const Rewrite> normalisation_rewrites();
std::span<const Rewrite> quantisation_rewrites();
std::span<const Rewrite> reduction_rewrites();
std::span<const Rewrite> resize_rewrites();
std::span<const Rewrite> sequence_rewrites();

}  // namespace hologram::onnx
