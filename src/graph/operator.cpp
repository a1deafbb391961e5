#include "graph/operator.h"

#include "backends/cpu/kernels/kernel.h"
#include "graph/ops/families.h"

namespace hologram::graph {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!trim(text).empty()) {
    const size_t comma = text.find(',');
    parts.push_back(trim(text.substr(0, comma)));
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

std::vector<Operator::Formal> formals(std::string_view text) {
  std::vector<Operator::Formal> result;
  for (std::string_view part : split(text)) {
    Operator::Formal formal;
    const size_t colon = part.find(':');
    formal.name = part.substr(0, colon);
    part.remove_prefix(colon + 1);
    if (part.ends_with("?")) formal.optional = true, part.remove_suffix(1);
    if (part.ends_with("...")) formal.variadic = true, part.remove_suffix(3);
    if (part.ends_with("?")) formal.optional = true, part.remove_suffix(1);
    formal.type = part;
    result.push_back(std::move(formal));
  }
  return result;
}

}  // namespace

std::string TypeSet::to_string() const {
  std::string text;
  for (unsigned code = 0; code < 64; ++code)
    if (auto type = dtype_from_code(code); type && has(*type))
      text += (text.empty() ? "" : ", ") + std::string(name_of(*type));
  return text;
}

ValueId ComposeContext::number(DType type, double value) const {
  switch (type) {
    case DType::f32:
      return graph.constant(static_cast<float>(value));
    case DType::f64:
      return graph.constant(value);
    case DType::f16:
      return graph.constant(Half(static_cast<float>(value)));
    case DType::bf16:
      return graph.constant(BFloat16(static_cast<float>(value)));
    case DType::i64:
      return graph.constant(static_cast<int64_t>(value));
    case DType::boolean:
      return graph.constant(value != 0);
    default:
      return cast(graph.constant(static_cast<int64_t>(value)), type);
  }
}

ValueId ComposeContext::cast(ValueId value, DType to) const {
  if (graph.value(value).type.dtype == to) return value;
  return graph.op("Cast").input(value).attribute("to", static_cast<int64_t>(to));
}

OperatorBuilder& OperatorBuilder::signature(std::string_view text) {
  const size_t arrow = text.find("->");
  entry_.inputs = formals(text.substr(0, arrow));
  entry_.outputs = formals(text.substr(arrow + 2));
  return *this;
}

OperatorBuilder& OperatorBuilder::attributes(std::string_view text) {
  for (std::string_view part : split(text)) {
    const size_t colon = part.find(':');
    std::string_view kind = part.substr(colon + 1);
    const char code = kind.size() == 2 ? static_cast<char>(kind[0] - 'a' + 'A') : kind[0];
    entry_.attributes[std::string(part.substr(0, colon))] = code;
  }
  return *this;
}

OperatorBuilder OperatorTable::add(std::string name, std::string domain) {
  Operator& entry = entries_[{domain, name}];
  entry.name = std::move(name);
  entry.domain = std::move(domain);
  return OperatorBuilder(entry);
}

const Operator* OperatorTable::find(std::string_view name, std::string_view domain) const {
  auto found = entries_.find({std::string(domain), std::string(name)});
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<const Operator*> OperatorTable::all() const {
  std::vector<const Operator*> list;
  for (const auto& [key, entry] : entries_) list.push_back(&entry);
  return list;
}

const OperatorTable& operators() {
  static const OperatorTable kTable = [] {
    OperatorTable table;
    ops::add_all(table);
    return table;
  }();
  return kTable;
}

Result<const Operator*> operator_of(const Node& node) {
  const Operator* entry = operators().find(node.op, node.domain);
  if (!entry)
    return fail(ErrorCode::unsupported,
                "operator {}{}{} is not supported; the operators of ai.onnx, ai.onnx.ml and the "
                "common ones of com.microsoft are (docs/conformance.md lists them)",
                node.domain, node.domain.empty() ? "" : ".", node.op);
  return entry;
}

Result<Way> way_of(const Graph& graph, const Node& node, const Operator& entry) {
  if (entry.control_flow) return Way::control_flow;
  if (entry.compose) return Way::composition;
  if (entry.pointwise_body) return Way::pointwise;
  if (entry.pointwise) {
    bool computes = true;
    auto look = [&](ValueId id) {
      if (id == kNoValue) return;
      const ValueType& type = graph.value(id).type;
      computes &= type.is_tensor() && is_compute(type.dtype);
    };
    for (ValueId id : node.inputs) look(id);
    for (ValueId id : node.outputs) look(id);
    if (computes) return Way::pointwise;
  }
  if (kernels::find_kernel(entry.kernel)) return Way::kernel;
  std::string types;
  for (ValueId id : node.inputs)
    if (id != kNoValue) types += (types.empty() ? "" : ", ") + graph.value(id).type.to_string();
  return fail(ErrorCode::unsupported, "operator {} has no kernel for {}", entry.name, types);
}

}  // namespace hologram::graph
