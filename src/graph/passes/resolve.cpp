#include "graph/passes/resolve.h"

#include <unordered_map>

#include "backends/cpu/kernels/alignment.h"
#include "graph/evaluate.h"
#include "graph/infer.h"
#include "graph/passes/quantised_weights.h"

namespace hologram::graph {
namespace {

// Results larger than their inputs together by this much stay computed: an archive should not
// hold what one cheap step makes.
constexpr uint64_t kLargestGrowth = 16 << 20;

class Resolver {
 public:
  explicit Resolver(Graph& graph) : graph_(graph) {}

  Status run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) HOLOGRAM_CHECK(process(std::move(node), 0));
    for (ValueId& id : graph_.outputs) id = current(id);
    return {};
  }

 private:
  // What a value has been replaced by.
  ValueId current(ValueId id) const {
    for (auto it = alias_.find(id); it != alias_.end(); it = alias_.find(id)) id = it->second;
    return id;
  }

  Status process(Node node, int depth) {
    if (depth > 64) return fail(ErrorCode::internal, "composition of {} does not end", node.op);
    for (ValueId& id : node.inputs) id = current(id);
    for (Subgraph& sub : node.subgraphs)
      for (Graph::Capture& capture : sub.graph->captures) {
        capture.outer = current(capture.outer);
        ValueInfo& inner = sub.graph->value(capture.inner);
        const ValueInfo& outer = graph_.value(capture.outer);
        inner.type = outer.type;
        inner.contents = outer.contents;
        if (outer.constant) sub.graph->mark_constant(capture.inner, *outer.constant);
      }
    if (Graph* branch = branch_taken(node)) return take_branch(node, *branch, depth);
    HOLOGRAM_CHECK(infer_node(graph_, node));
    HOLOGRAM_TRY(const Operator* entry, operator_of(node));
    auto way = way_of(graph_, node, *entry);
    if (!way) return fail(std::move(way).error(), node.describe());
    HOLOGRAM_TRY(const bool folded, fold(node, *entry, *way));
    if (folded || settle(node, *way)) return {};
    if (*way == Way::composition) return expand(node, *entry, depth);
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  // The branch of an If whose condition is known; nullptr for any other node.
  Graph* branch_taken(const Node& node) const {
    if (node.op != "If" || !node.domain.empty() || node.inputs.size() != 1) return nullptr;
    const auto& condition = graph_.value(node.inputs[0]).constant;
    if (!condition || condition->dtype != DType::boolean || condition->count() != 1) return nullptr;
    Graph* branch = node.subgraph(*condition->as<uint8_t>() != 0 ? "then_branch" : "else_branch");
    const bool fits =
        branch && branch->inputs.empty() && branch->outputs.size() >= node.outputs.size();
    return fits ? branch : nullptr;
  }

  // What the branch does is done here instead.
  Status take_branch(const Node& node, Graph& branch, int depth) {
    std::unordered_map<ValueId, ValueId> places{{kNoValue, kNoValue}};
    for (const Graph::Capture& capture : branch.captures) places[capture.inner] = capture.outer;
    const auto place = [&](ValueId id) {
      const auto [at, fresh] = places.try_emplace(id);
      if (fresh) {
        const ValueInfo& info = branch.value(id);
        at->second = graph_.add_value(info.name, info.type);
        if (info.constant) graph_.mark_constant(at->second, *info.constant);
      }
      return at->second;
    };
    for (Node& inner : branch.nodes) {
      for (ValueId& id : inner.inputs) id = place(id);
      for (ValueId& id : inner.outputs) id = place(id);
      for (Subgraph& sub : inner.subgraphs)
        for (Graph::Capture& capture : sub.graph->captures) capture.outer = place(capture.outer);
      HOLOGRAM_CHECK(process(std::move(inner), depth));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) alias_[node.outputs[i]] = place(branch.outputs[i]);
    return {};
  }

  // Integers that follow from shapes alone become constants: a dimension that is a number may be
  // all that an If asks for.
  bool settle(const Node& node, Way way) {
    if (way != Way::kernel || node.outputs.size() != 1) return false;
    const ValueInfo& info = graph_.value(node.outputs[0]);
    const ValueType& type = info.type;
    if (!info.contents || !type.is_tensor() || type.dtype != DType::i64 ||
        !type.has_static_shape() || type.shape->rank() > 1)
      return false;
    std::vector<int64_t> numbers;
    for (const Dim& dim : *info.contents) {
      if (dim.is_symbol()) return false;
      numbers.push_back(dim.value());
    }
    const Dims dims = type.shape->rank() == 0 ? Dims() : Dims{static_cast<int64_t>(numbers.size())};
    if (dims.count() != static_cast<int64_t>(numbers.size()) ||
        !(Shape(std::span<const int64_t>(dims)) == *type.shape))
      return false;
    auto tensor = Tensor::from<int64_t>(dims, numbers);
    if (!tensor) return false;
    graph_.mark_constant(node.outputs[0], *std::move(tensor));
    return true;
  }

  Result<bool> fold(const Node& node, const Operator& entry, Way way) {
    if (!entry.deterministic || (way != Way::pointwise && way != Way::kernel)) return false;
    if (is_quantised_weight(graph_, node)) return false;  // for use_quantised_weights()
    uint64_t input_bytes = 0, output_bytes = 0;
    std::vector<kernels::Value> inputs;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) {
        inputs.emplace_back();
        continue;
      }
      const ValueInfo& info = graph_.value(id);
      if (!info.constant) return false;
      input_bytes += info.constant->bytes();
      HOLOGRAM_TRY(Tensor input, kernels::aligned(*info.constant));
      inputs.emplace_back(std::move(input));
    }
    for (ValueId id : node.outputs) {
      const ValueType& type = graph_.value(id).type;
      if (!type.is_tensor()) return false;
      if (!type.has_static_shape()) continue;
      HOLOGRAM_TRY(const uint64_t count, type.shape->element_count());
      output_bytes += bytes_for(type.dtype, count);
    }
    if (output_bytes > input_bytes + kLargestGrowth) return false;
    auto outputs = evaluate_node(graph_, node, inputs);
    if (!outputs) return fail(std::move(outputs).error(), node.describe());
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if ((*outputs)[i].is_tensor()) graph_.mark_constant(node.outputs[i], (*outputs)[i].tensor);
    return true;
  }

  Status expand(const Node& node, const Operator& entry, int depth) {
    const size_t start = graph_.nodes.size();
    ComposeContext context{graph_, node};
    auto values = entry.compose(context);
    if (!values) return fail(std::move(values).error(), node.describe());
    if (!graph_.status()) return fail(graph_.status().error(), node.describe());
    std::vector<Node> parts;
    for (size_t i = start; i < graph_.nodes.size(); ++i)
      parts.push_back(std::move(graph_.nodes[i]));
    graph_.nodes.resize(start);
    for (Node& part : parts) {
      if (part.name.empty()) part.name = node.name;
      HOLOGRAM_CHECK(process(std::move(part), depth + 1));
    }
    if (values->size() < node.outputs.size())
      return fail(ErrorCode::internal, "composition of {} gives {} of {} outputs", node.op,
                  values->size(), node.outputs.size());
    for (size_t i = 0; i < node.outputs.size(); ++i) alias_[node.outputs[i]] = (*values)[i];
    return {};
  }

  Graph& graph_;
  std::unordered_map<ValueId, ValueId> alias_;
};

}  // namespace

Status resolve(Graph& graph) { return Resolver(graph).run(); }

}  // namespace hologram::graph
