#include "graph/passes/common_subexpressions.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

#include "graph/operator.h"
#include "graph/passes/replacements.h"

namespace hologram::graph {
namespace {

// Constants up to this size are compared by their bytes, larger ones by where they are.
constexpr uint64_t kSmallConstant = 256;

// A text that is equal for equal tensors.
std::string key_of(const Tensor& tensor) {
  std::string key = fmt::format("{}{}", name_of(tensor.dtype), tensor.dims.to_string());
  if (tensor.dtype == DType::string) {
    for (const std::string& s : tensor.strings()) key += fmt::format(" {}:{}", s.size(), s);
  } else if (tensor.bytes() <= kSmallConstant) {
    key.append(reinterpret_cast<const char*>(tensor.data), tensor.bytes());
  } else {
    key += fmt::format("@{}", static_cast<const void*>(tensor.data));
  }
  return key;
}

std::string key_of(const Attribute& a) {
  std::string key = fmt::format("\n{} {} {} ", a.name, static_cast<int>(a.kind), a.integer);
  key.append(reinterpret_cast<const char*>(&a.number), sizeof(a.number));
  key += fmt::format("{}:{} {}", a.text.size(), a.text, fmt::join(a.integers, ","));
  key += fmt::format(" {}:", a.numbers.size());
  key.append(reinterpret_cast<const char*>(a.numbers.data()), a.numbers.size() * sizeof(float));
  for (const std::string& s : a.texts) key += fmt::format(" {}:{}", s.size(), s);
  if (a.kind == Attribute::Kind::tensor) key += key_of(a.tensor);
  return key;
}

class Merger {
 public:
  explicit Merger(Graph& graph) : graph_(graph) {}

  void run() {
    for (Node& node : graph_.nodes) {
      replacements_.apply(node);
      for (Subgraph& sub : node.subgraphs) merge_common_subexpressions(*sub.graph);
      if (!node.subgraphs.empty()) continue;
      const Operator* entry = operators().find(node.op, node.domain);
      if (!entry || !entry->deterministic) continue;
      auto [found, fresh] = seen_.try_emplace(key_of(node), &node);
      if (!fresh) merge(node, *found->second);
    }
    replacements_.apply_outputs(graph_);
  }

 private:
  // Equal constants count as one value.
  ValueId number_of(ValueId id) {
    if (id == kNoValue || !graph_.value(id).constant) return id;
    return constants_.try_emplace(hologram::graph::key_of(*graph_.value(id).constant), id)
        .first->second;
  }

  std::string key_of(const Node& node) {
    std::string key = node.domain + "." + node.op;
    for (ValueId id : node.inputs) key += fmt::format(" {}", number_of(id));
    std::vector<std::string> attributes;  // their order means nothing
    for (const Attribute& a : node.attributes) attributes.push_back(hologram::graph::key_of(a));
    std::ranges::sort(attributes);
    for (const std::string& a : attributes) key += a;
    // Which outputs there are may change what a kernel does.
    key += '\n';
    for (ValueId id : node.outputs) key += id == kNoValue ? '-' : '+';
    return key;
  }

  void merge(const Node& node, const Node& earlier) {
    for (ValueId id : node.outputs)
      if (id != kNoValue && is_output(graph_, id)) return;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue) replacements_.replace(node.outputs[i], earlier.outputs[i]);
  }

  Graph& graph_;
  Replacements replacements_;
  std::unordered_map<std::string, const Node*> seen_;
  std::unordered_map<std::string, ValueId> constants_;
};

}  // namespace

void merge_common_subexpressions(Graph& graph) { Merger(graph).run(); }

}  // namespace hologram::graph
