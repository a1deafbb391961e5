// ValueUses: who makes and who reads each value of a graph, for passes that match patterns.
//
// A snapshot: nodes are numbered as they were when it was made. A pass that replaces nodes marks
// the ones it takes out with remove() and calls sweep() at its end.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace hologram::graph {

class ValueUses {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  explicit ValueUses(Graph& graph);

  // The node that makes the value; nullptr for inputs, captures and constants.
  Node* maker(ValueId id) const;
  // The same where it is `op` of `domain`, else nullptr.
  Node* maker(ValueId id, std::string_view op, std::string_view domain = "") const;
  size_t maker_index(ValueId id) const { return id < maker_.size() ? maker_[id] : kNone; }
  // How often the value is read: by nodes, by subgraphs, as an output.
  size_t count(ValueId id) const { return count_[id]; }
  // The one node that reads the value; kNone where it is read elsewhere or more than once.
  size_t only_reader(ValueId id) const { return count_[id] == 1 ? reader_[id] : kNone; }

  // The node does nothing any more; sweep() takes it out.
  static void remove(Node& node);
  static bool removed(const Node& node) { return node.op.empty(); }
  void sweep();

 private:
  Graph& graph_;
  std::vector<size_t> maker_, reader_, count_;
};

// The one element of an f32 constant of one element.
std::optional<float> scalar_constant(const Graph& graph, ValueId id);
// The constant of a value, nullptr where it has none or the id is kNoValue.
const Tensor* constant_of(const Graph& graph, ValueId id);
bool is_f32(const Graph& graph, ValueId id);
// The value's shape, nullptr where it is not known.
const Shape* shape_of(const Graph& graph, ValueId id);
// Whether the node only gives its first input's elements another shape: Reshape, Squeeze, Flatten,
// a Transpose that moves only axes of one element, ... Both shapes are known and static.
bool is_reshape(const Graph& graph, const Node& node);

}  // namespace hologram::graph
