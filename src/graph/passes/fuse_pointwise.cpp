#include "graph/passes/fuse_pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "backends/cpu/kernels/pointwise.h"
#include "graph/dim.h"
#include "graph/operator.h"
#include "graph/passes/groups.h"
#include "graph/pointwise.h"

namespace hologram::graph {
namespace {

// A program is compiled in time that grows faster than its length; longer chains gain little more.
constexpr size_t kMostNodes = 48, kMostInstructions = 192, kMostInputs = 16;
// Groups are found in stretches of this many nodes: the table of who depends on whom is quadratic.
constexpr size_t kStretch = 2048;

// What is known of one node.
struct Candidate {
  bool pointwise = false;
  size_t instructions = 0;
  std::string apart;  // the first reason why it did not join a neighbour
};

class Fuser {
 public:
  Fuser(Graph& graph, FusionReport& report) : graph_(graph), report_(report) {}

  Status run() {
    for (Node& node : graph_.nodes)
      if (way(node) == Way::control_flow)
        for (Subgraph& sub : node.subgraphs) HOLOGRAM_CHECK(fuse_pointwise(*sub.graph, report_));
    look();
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t begin = 0; begin < nodes.size(); begin += kStretch)
      HOLOGRAM_CHECK(fuse(nodes, begin, std::min(nodes.size(), begin + kStretch)));
    return {};
  }

 private:
  Way way(const Node& node) const {
    const Operator* entry = operators().find(node.op, node.domain);
    return entry ? way_of(graph_, node, *entry).value_or(Way::kernel) : Way::kernel;
  }

  // Who makes and who reads each value, which shapes are the same, which nodes may join.
  void look() {
    const size_t values = graph_.value_count();
    maker_.assign(values, kNobody);
    shape_like_.resize(values);
    for (ValueId id = 0; id < values; ++id) shape_like_[id] = id;
    candidates_.resize(graph_.nodes.size());
    readers_.resize(values);
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      names_.push_back(node.op);
      for_each_read(node, [&](ValueId id) { readers_[id].push_back(n); });
      for (ValueId id : node.outputs)
        if (id != kNoValue) maker_[id] = n;
      Candidate& candidate = candidates_[n];
      if (way(node) != Way::pointwise || !node.subgraphs.empty()) continue;
      const std::vector<ValueId> inputs = pointwise_inputs(graph_, node);
      auto program = pointwise_program(graph_, std::span(&node, 1), inputs, node.outputs);
      if (!program) continue;
      candidate.pointwise = true;
      candidate.instructions = program->body.size();
      // Where all operands have one shape, known or not, the result has it too.
      const bool alike = std::ranges::all_of(
          inputs, [&](ValueId id) { return shape_like_[id] == shape_like_[inputs[0]]; });
      if (alike && !inputs.empty()) shape_like_[node.outputs[0]] = shape_like_[inputs[0]];
    }
    for (ValueId id : graph_.outputs) readers_[id].push_back(kNobody);
  }

  template <typename Visit>
  static void for_each_read(const Node& node, Visit visit) {
    for (ValueId id : node.inputs)
      if (id != kNoValue) visit(id);
    for (const Subgraph& sub : node.subgraphs)
      for (const Graph::Capture& capture : sub.graph->captures) visit(capture.outer);
  }

  bool same_shape(ValueId a, ValueId b) const {
    if (shape_like_[a] == shape_like_[b]) return true;
    const auto &x = graph_.value(a).type.shape, &y = graph_.value(b).type.shape;
    return x && y && equal_shapes(*x, *y);
  }

  Status fuse(std::vector<Node>& nodes, size_t begin, size_t end) {
    Groups groups(end - begin);
    for (size_t n = begin; n < end; ++n) {
      std::vector<uint32_t> before;
      for_each_read(nodes[n], [&](ValueId id) {
        if (maker_[id] != kNobody && maker_[id] >= begin)
          before.push_back(maker_[id] - static_cast<uint32_t>(begin));
      });
      const auto here = static_cast<uint32_t>(n - begin);
      groups.add(here, before);
      if (!candidates_[n].pointwise) continue;
      std::ranges::sort(before, std::greater());
      for (uint32_t other : before) {
        if (!candidates_[begin + other].pointwise || groups.leader(other) == groups.leader(here))
          continue;
        std::string why = obstacle(nodes, begin, groups, other, here);
        if (why.empty())
          groups.merge(other, here);
        else
          for (size_t k : {n, begin + other})
            if (candidates_[k].apart.empty()) candidates_[k].apart = why;
      }
    }
    for (const std::vector<uint32_t>& members : groups.in_order()) {
      std::vector<uint32_t> all = members;
      for (uint32_t& m : all) m += static_cast<uint32_t>(begin);
      HOLOGRAM_CHECK(emit(nodes, all));
    }
    return {};
  }

  // Why the groups of two nodes cannot be one; empty where they can.
  std::string obstacle(const std::vector<Node>& nodes, size_t begin, const Groups& groups,
                       uint32_t other, uint32_t here) const {
    const ValueId a = nodes[begin + other].outputs[0], b = nodes[begin + here].outputs[0];
    if (!same_shape(a, b))
      return graph_.value(a).type.has_static_shape() && graph_.value(b).type.has_static_shape()
                 ? "a smaller result is broadcast to a larger one"
                 : "the two results are not provably of one shape";
    std::vector<uint32_t> members = groups.members(other);
    members.insert(members.end(), groups.members(here).begin(), groups.members(here).end());
    size_t instructions = 0;
    std::vector<ValueId> inputs;
    for (uint32_t m : members) {
      instructions += candidates_[begin + m].instructions;
      for (ValueId id : nodes[begin + m].inputs)
        if (id != kNoValue && !graph_.value(id).constant) inputs.push_back(id);
    }
    for (uint32_t m : members) std::erase(inputs, nodes[begin + m].outputs[0]);
    std::ranges::sort(inputs);
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    if (members.size() > kMostNodes || instructions > kMostInstructions ||
        inputs.size() > kMostInputs)
      return fmt::format("the group would have {} operators, {} instructions and {} operands",
                         members.size(), instructions, inputs.size());
    if (!groups.can_merge(other, here)) return "another operator reads the one and feeds the other";
    return "";
  }

  // Adds the node of a group, or its only member, to the graph.
  Status emit(std::vector<Node>& nodes, const std::vector<uint32_t>& members) {
    if (members.size() == 1) {
      Node& node = nodes[members[0]];
      if (candidates_[members[0]].pointwise) stays_apart(nodes, members[0]);
      graph_.nodes.push_back(std::move(node));
      return {};
    }
    Node fused{.op = "Pointwise", .domain = "hologram"};
    auto body = std::make_unique<Graph>();
    std::unordered_map<ValueId, ValueId> inner;
    std::string operators;
    for (uint32_t m : members) {
      const Node& node = nodes[m];
      for (ValueId id : node.inputs) {
        if (id == kNoValue || inner.contains(id)) continue;
        inner[id] = body->add_input(graph_.value(id).name, graph_.value(id).type);
        fused.inputs.push_back(id);
      }
      const ValueId out = node.outputs[0];
      inner[out] = body->add_value(graph_.value(out).name, graph_.value(out).type);
      operators += (operators.empty() ? "" : ", ") + node.op;
      const bool escapes = std::ranges::any_of(readers_[out], [&](uint32_t reader) {
        return std::ranges::find(members, reader) == members.end();
      });
      if (!escapes) continue;
      fused.outputs.push_back(out);
      body->outputs.push_back(inner[out]);
      body->output_names.push_back(graph_.value(out).name);
    }
    for (uint32_t m : members) {
      const Node& node = nodes[m];
      Node copy{node.op,     node.domain,  node.name,       node.opset,
                node.inputs, node.outputs, node.attributes, {}};
      for (ValueId& id : copy.inputs)
        if (id != kNoValue) id = inner[id];
      copy.outputs[0] = inner[copy.outputs[0]];
      body->nodes.push_back(std::move(copy));
    }
    fused.name = nodes[members.back()].name;
    fused.subgraphs.push_back({"body", std::move(body)});
    // The interpreter has so many registers; a group that needs more is rare and stays apart.
    auto program = pointwise_program(graph_, std::span(&fused, 1), pointwise_inputs(graph_, fused),
                                     fused.outputs);
    HOLOGRAM_CHECK(program);
    if (auto runs = kernels::Pointwise::prepare(*program); !runs) {
      for (uint32_t m : members) {
        candidates_[m].apart = runs.error().message();
        stays_apart(nodes, m);
        graph_.nodes.push_back(std::move(nodes[m]));
      }
      return {};
    }
    report_.fused.push_back(
        {fused.name, std::move(operators), graph_.value(fused.outputs[0]).type.to_string()});
    graph_.nodes.push_back(std::move(fused));
    return {};
  }

  void stays_apart(const std::vector<Node>& nodes, uint32_t n) {
    const Node& node = nodes[n];
    std::string reason = candidates_[n].apart;
    if (reason.empty()) {
      std::string before = "inputs", after = "outputs";
      for (ValueId id : node.inputs)
        if (id != kNoValue && maker_[id] != kNobody) before = names_[maker_[id]];
      for (uint32_t reader : readers_[node.outputs[0]])
        if (reader != kNobody) after = names_[reader];
      reason = fmt::format("no pointwise neighbour: between {} and {}", before, after);
    }
    report_.apart.push_back({node.name, node.op, std::move(reason)});
  }

  static constexpr uint32_t kNobody = 0xffffffff;

  Graph& graph_;
  FusionReport& report_;
  std::vector<Candidate> candidates_;           // one a node
  std::vector<std::string> names_;              // the operator of each node
  std::vector<uint32_t> maker_;                 // of each value: a node
  std::vector<std::vector<uint32_t>> readers_;  // of each value: nodes; kNobody: the caller
  std::vector<ValueId> shape_like_;             // of each value: one that has the same shape
};

}  // namespace

Status fuse_pointwise(Graph& graph, FusionReport& report) { return Fuser(graph, report).run(); }

}  // namespace hologram::graph
