#include "graph/passes/channels_last.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/operator.h"
#include "graph/passes/value_uses.h"

namespace hologram::graph {
namespace {

class Orderer {
 public:
  explicit Orderer(Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      if (is_convolution(node)) liked_.insert(node.inputs[0]);
      if (is_element_wise(node))
        for (ValueId id : node.inputs) liked_.insert(id);
    }
  }

  void run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) {
      if (is_convolution(node)) {
        place_convolution(node);
      } else if (is_element_wise(node) &&
                 std::ranges::any_of(node.inputs, [&](ValueId id) { return last_.contains(id); })) {
        place_element_wise(node);
      } else {
        for (ValueId id : node.inputs) need_plain(id);
        for (const Subgraph& sub : node.subgraphs)
          for (const Graph::Capture& capture : sub.graph->captures) need_plain(capture.outer);
      }
      graph_.nodes.push_back(std::move(node));
    }
    for (ValueId id : graph_.outputs) need_plain(id);
  }

 private:
  struct Form {
    ValueId id = kNoValue;
    bool plain = false;  // whether the plain form exists as well
  };

  // An image whose sizes are all known.
  bool is_image(ValueId id) const {
    const Shape* shape = id == kNoValue ? nullptr : shape_of(graph_, id);
    return shape && shape->rank() == 4 && shape->is_static();
  }
  bool is_convolution(const Node& node) const {
    return node.op == "ConvInteger" && node.domain == "hologram" && is_image(node.inputs[0]) &&
           is_image(node.outputs[0]);
  }
  bool is_scalar(ValueId id) const {
    const Tensor* t = constant_of(graph_, id);
    return id == kNoValue || (t && t->count() == 1);
  }
  // Whether each element of the results depends on the elements at its place alone.
  bool is_element_wise(const Node& node) const {
    const Operator* entry = operators().find(node.op, node.domain);
    const bool quantises =
        node.domain.empty() && (node.op == "QuantizeLinear" || node.op == "DequantizeLinear");
    if (!entry || (!entry->pointwise && !quantises) || !node.subgraphs.empty() ||
        node.outputs.size() != 1 || !is_image(node.outputs[0]))
      return false;
    const Shape& shape = *shape_of(graph_, node.outputs[0]);
    return std::ranges::all_of(node.inputs, [&](ValueId id) {
      return is_scalar(id) ||
             (is_image(id) && !constant_of(graph_, id) && *shape_of(graph_, id) == shape);
    });
  }

  // `to` is `from` with the two orders exchanged: as a matrix, transposed.
  void turn(ValueId from, ValueId to, bool to_last) {
    const Shape shape = *shape_of(graph_, to);  // a copy: new values move the others
    const int64_t batch = shape[0].value(), channels = shape[1].value();
    const int64_t area = shape[2].value() * shape[3].value();
    const auto type = graph_.value(to).type.dtype;
    const std::string name = graph_.value(to).name;
    const auto make = [&](std::vector<int64_t> dims) {
      return graph_.add_value(
          name, ValueType::tensor(type, Shape(std::vector<Dim>(dims.begin(), dims.end()))));
    };
    const std::vector<int64_t> plain = {batch, channels, area}, last = {batch, area, channels};
    const std::vector<int64_t>&before = to_last ? plain : last, &after = to_last ? last : plain;
    const ValueId matrix = make(before), turned = make(after);
    graph_.nodes.push_back({.op = "Reshape",
                            .name = name,
                            .inputs = {from, graph_.constant(before)},
                            .outputs = {matrix}});
    Node transpose{.op = "Transpose", .name = name, .inputs = {matrix}, .outputs = {turned}};
    transpose.attributes.set("perm", std::vector<int64_t>{0, 2, 1});
    graph_.nodes.push_back(std::move(transpose));
    const std::vector<int64_t> whole = {batch, channels, shape[2].value(), shape[3].value()};
    graph_.nodes.push_back({.op = "Reshape",
                            .name = name,
                            .inputs = {turned, graph_.constant(whole)},
                            .outputs = {to}});
  }

  // From here on the plain value exists.
  void need_plain(ValueId id) {
    const auto found = last_.find(id);
    if (found == last_.end() || found->second.plain) return;
    found->second.plain = true;
    turn(found->second.id, id, false);
  }
  ValueId need_last(ValueId id) {
    if (const auto found = last_.find(id); found != last_.end()) return found->second.id;
    const ValueId made = new_last(id, true);
    turn(id, made, true);
    return made;
  }
  ValueId new_last(ValueId id, bool plain) {
    const ValueInfo info = graph_.value(id);
    const ValueId made = graph_.add_value(info.name + "/last", info.type);
    last_[id] = {made, plain};
    return made;
  }

  void place_convolution(Node& node) {
    for (size_t i = 1; i < node.inputs.size(); ++i) need_plain(node.inputs[i]);
    // A plain image is turned by the convolution itself.
    if (const auto found = last_.find(node.inputs[0]); found != last_.end()) {
      node.inputs[0] = found->second.id;
      node.attributes.set("x_channels_last", int64_t{1});
    }
    if (!liked_.contains(node.outputs[0])) return;
    node.outputs[0] = new_last(node.outputs[0], false);
    node.attributes.set("y_channels_last", int64_t{1});
  }

  void place_element_wise(Node& node) {
    for (ValueId& id : node.inputs)
      if (!is_scalar(id)) id = need_last(id);
    node.outputs[0] = new_last(node.outputs[0], false);
  }

  Graph& graph_;
  std::set<ValueId> liked_;
  std::map<ValueId, Form> last_;
};

}  // namespace

Status keep_channels_last(Graph& graph) {
  for (Node& node : graph.nodes)
    for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(keep_channels_last(*sub.graph));
  if (std::ranges::any_of(graph.nodes, [](const Node& n) { return n.op == "ConvInteger"; }))
    Orderer(graph).run();
  return {};
}

}  // namespace hologram::graph
