#include "graph/infer.h"

#include <algorithm>
#include <cctype>

namespace hologram::graph {
namespace {

using Bindings = std::map<std::string, DType, std::less<>>;

// The type inside "seq(T)" or "opt(T)", and which of the two.
struct Wrapped {
  std::string_view inner;
  ValueType::Kind kind;
};
Wrapped unwrap(std::string_view type) {
  if (type.starts_with("seq(")) return {type.substr(4, type.size() - 5), ValueType::Kind::sequence};
  if (type.starts_with("opt(")) return {type.substr(4, type.size() - 5), ValueType::Kind::optional};
  return {type, ValueType::Kind::tensor};
}

std::string_view kind_name(ValueType::Kind kind) {
  switch (kind) {
    case ValueType::Kind::tensor:
      return "a tensor";
    case ValueType::Kind::sequence:
      return "a sequence";
    case ValueType::Kind::optional:
      return "an optional";
    default:
      return "a value of unknown type";
  }
}

Status check_input(const Operator& entry, const Operator::Formal& formal, const ValueType& type,
                   Bindings& bound) {
  if (formal.type == "V") return {};
  const Wrapped want = unwrap(formal.type);
  if (type.kind != want.kind)
    return fail(ErrorCode::type_mismatch, "input {} must be {}, not {}", formal.name,
                kind_name(want.kind), kind_name(type.kind));
  const DType dtype = type.innermost_dtype();
  if (auto fixed = dtype_from_name(want.inner)) {
    if (*fixed == dtype) return {};
    return fail(ErrorCode::type_mismatch, "input {} must be {}, not {}", formal.name, want.inner,
                name_of(dtype));
  }
  if (auto c = entry.constraints.find(want.inner);
      c != entry.constraints.end() && !c->second.has(dtype))
    return fail(ErrorCode::unsupported, "input {} of type {} is not supported; supported: {}",
                formal.name, name_of(dtype), c->second.to_string());
  auto [slot, fresh] = bound.try_emplace(std::string(want.inner), dtype);
  if (!fresh && slot->second != dtype)
    return fail(ErrorCode::type_mismatch,
                "input {} is {} where another input of the same type is {}", formal.name,
                name_of(dtype), name_of(slot->second));
  return {};
}

const Operator::Formal* formal_at(const std::vector<Operator::Formal>& formals, size_t index) {
  if (index < formals.size()) return &formals[index];
  return !formals.empty() && formals.back().variadic ? &formals.back() : nullptr;
}

Status check_attributes(const Operator& entry, const Node& node) {
  static constexpr std::string_view kCodes = "ifsIFSt";
  for (const Attribute& a : node.attributes) {
    auto spec = entry.attributes.find(a.name);
    if (spec == entry.attributes.end())
      return fail(ErrorCode::unsupported, "attribute '{}' is not known to the operator", a.name);
    const char code = kCodes[static_cast<size_t>(a.kind)];
    // An empty list has no element that tells its kind.
    if (spec->second != code && !(std::isupper(spec->second) && std::isupper(code) &&
                                  a.integers.empty() && a.numbers.empty() && a.texts.empty()))
      return fail(ErrorCode::type_mismatch, "attribute '{}' has the wrong kind", a.name);
  }
  return {};
}

Status check_and_type(Graph& graph, Node& node, const Operator& entry) {
  Bindings bound;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Operator::Formal* formal = formal_at(entry.inputs, i);
    if (!formal)
      return fail(ErrorCode::invalid_argument, "{} inputs; the operator takes at most {}",
                  node.inputs.size(), entry.inputs.size());
    if (node.inputs[i] == kNoValue) {
      if (!formal->optional)
        return fail(ErrorCode::invalid_argument, "input {} is missing", formal->name);
      continue;
    }
    const ValueType& type = graph.value(node.inputs[i]).type;
    if (!type.is_known())
      return fail(ErrorCode::type_mismatch, "the type of input {} ('{}') is not known",
                  formal->name, graph.value(node.inputs[i]).name);
    // Variadic inputs named "V" may differ from one another.
    HOLOGRAM_CHECK(check_input(entry, *formal, type, bound));
  }
  for (size_t i = node.inputs.size(); i < entry.inputs.size(); ++i)
    if (!entry.inputs[i].optional)
      return fail(ErrorCode::invalid_argument, "input {} is missing", entry.inputs[i].name);
  HOLOGRAM_CHECK(check_attributes(entry, node));
  // Results that the operator always has, and the node does not name.
  while (node.outputs.size() < entry.outputs.size() &&
         !entry.outputs[node.outputs.size()].optional &&
         !entry.outputs[node.outputs.size()].variadic)
    node.outputs.push_back(graph.add_value(""));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Operator::Formal* formal = formal_at(entry.outputs, i);
    if (!formal)
      return fail(ErrorCode::invalid_argument, "{} outputs; the operator has at most {}",
                  node.outputs.size(), entry.outputs.size());
    if (node.outputs[i] == kNoValue) continue;
    ValueInfo& out = graph.value(node.outputs[i]);
    out.type = {};
    out.contents.reset();
    const Wrapped want = unwrap(formal->type);
    std::optional<DType> dtype = dtype_from_name(want.inner);
    if (auto b = bound.find(want.inner); b != bound.end()) dtype = b->second;
    if (!dtype) continue;  // the infer function says
    ValueType tensor = ValueType::tensor(*dtype);
    out.type = want.kind == ValueType::Kind::sequence   ? ValueType::sequence(tensor)
               : want.kind == ValueType::Kind::optional ? ValueType::optional(tensor)
                                                        : tensor;
  }
  if (entry.infer) {
    InferContext context(graph, node);
    HOLOGRAM_CHECK(entry.infer(context));
  }
  for (const ValueId id : node.outputs)
    if (id != kNoValue && graph.value(id).type.shape &&
        graph.value(id).type.shape->rank() > kernels::kMaxRank)
      return fail(ErrorCode::unsupported, "a result of rank {}; at most {}",
                  graph.value(id).type.shape->rank(), kernels::kMaxRank);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNoValue && !graph.value(node.outputs[i]).type.is_known())
      return fail(ErrorCode::internal, "the type of output {} was not inferred", i);
  return {};
}

}  // namespace

std::optional<std::vector<int64_t>> InferContext::numbers(size_t index) const {
  const std::vector<Dim>* dims = contents(index);
  if (!dims) return std::nullopt;
  std::vector<int64_t> values;
  for (const Dim& dim : *dims) {
    if (dim.is_symbol()) return std::nullopt;
    values.push_back(dim.value());
  }
  return values;
}

Status infer_node(Graph& graph, Node& node) {
  auto check = [&]() -> Status {
    HOLOGRAM_TRY(const Operator* entry, operator_of(node));
    return check_and_type(graph, node, *entry);
  };
  return in_context(check(), [&] { return node.describe(); });
}

void InferContext::set_shape(size_t output, Shape shape) {
  if (!wants(output)) return;
  uint64_t count = 1;
  bool possible = true;
  for (const Dim& dim : shape)
    possible =
        possible && (dim.is_symbol() ||
                     (dim.value() >= 0 &&
                      !__builtin_mul_overflow(count, std::max<uint64_t>(dim.value(), 1), &count) &&
                      count <= kernels::kMostElements));
  if (!possible) shape = Shape(std::vector<Dim>(shape.rank(), unknown_dim()));
  out(output).type.shape = std::move(shape);
}

Status same_shape_as_first(InferContext& c) {
  if (const Shape* shape = c.shape(0))
    for (size_t i = 0; i < c.output_count(); ++i) c.set_shape(i, *shape);
  return {};
}

Status broadcast_all_inputs(InferContext& c) {
  std::optional<Shape> result;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has(i)) continue;
    if (!c.shape(i)) return {};
    if (!result) {
      result = *c.shape(i);
      continue;
    }
    HOLOGRAM_TRY(result, broadcast_shapes(*result, *c.shape(i)));
  }
  if (result) c.set_shape(0, *std::move(result));
  return {};
}

Status no_shape(InferContext&) { return {}; }

}  // namespace hologram::graph
