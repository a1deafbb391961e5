// Sequences of tensors, and optionals.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

// What the standard puts into sequences.
constexpr TypeSet kElements = kCompute | kComplex | kStrings;

Status sequence_empty(InferContext& c) {
  const int64_t code = c.integer("dtype", static_cast<int64_t>(DType::f32));
  const auto dtype =
      code > 0 && code < 256 ? dtype_from_code(static_cast<uint8_t>(code)) : std::optional<DType>();
  if (!dtype || !kElements.has(*dtype))
    return fail(ErrorCode::unsupported, "elements of type {}; supported: {}",
                dtype ? name_of(*dtype) : std::to_string(code), kElements.to_string());
  c.set_type(0, ValueType::sequence(ValueType::tensor(*dtype)));
  return {};
}

Status scalar_output(InferContext& c) {
  c.set_shape(0, Shape());
  return {};
}

// The type that the attribute `type` of Optional names, written by ValueType::to_string().
Result<ValueType> read_type_text(std::string_view text) {
  constexpr size_t kLongest = 1024;  // each level of nesting is a call
  if (text.size() > kLongest)
    return fail(ErrorCode::corrupt, "attribute 'type' is a text of {} bytes", text.size());
  for (auto [prefix, make] : {std::pair{std::string_view("seq("), &ValueType::sequence},
                              {"optional(", &ValueType::optional}})
    if (text.starts_with(prefix) && text.ends_with(')')) {
      HOLOGRAM_TRY(ValueType element,
                   read_type_text(text.substr(prefix.size(), text.size() - prefix.size() - 1)));
      return make(std::move(element));
    }
  const auto dtype = dtype_from_name(text.substr(0, text.find('[')));
  if (!dtype) return fail(ErrorCode::corrupt, "attribute 'type' is {}", text);
  return ValueType::tensor(*dtype);
}

Status optional(InferContext& c) {
  if (c.has(0)) {
    if (c.type(0).kind == ValueType::Kind::optional)
      return fail(ErrorCode::type_mismatch, "an optional of {}", c.type(0).to_string());
    c.set_type(0, ValueType::optional(c.type(0)));
    return {};
  }
  if (!c.attributes().has("type"))
    return fail(ErrorCode::invalid_argument, "neither an input nor the attribute 'type'");
  HOLOGRAM_TRY(ValueType element, read_type_text(c.text("type")));
  c.set_type(0, ValueType::optional(std::move(element)));
  return {};
}

Status optional_get_element(InferContext& c) {
  const ValueType& type = c.type(0);
  c.set_type(0, type.kind == ValueType::Kind::optional ? *type.element : type);
  return {};
}

}  // namespace

void add_sequence(OperatorTable& table) {
  auto add = [&](const char* name, const char* signature, const char* attributes = "",
                 InferFunction infer = no_shape) {
    table.add(name)
        .signature(signature)
        .where("T", kElements)
        .where("I", kIndices)
        .attributes(attributes)
        .infer(infer)
        .kernel();
  };
  add("SequenceEmpty", "-> output:seq(T)", "dtype:i", sequence_empty);
  add("SequenceConstruct", "inputs:T... -> output_sequence:seq(T)");
  add("SequenceAt", "input_sequence:seq(T), position:I -> tensor:T");
  add("SequenceInsert", "input_sequence:seq(T), tensor:T, position:I? -> output_sequence:seq(T)");
  add("SequenceErase", "input_sequence:seq(T), position:I? -> output_sequence:seq(T)");
  add("SequenceLength", "input_sequence:seq(T) -> length:i64", "", scalar_output);
  add("SplitToSequence", "input:T, split:I? -> output_sequence:seq(T)", "axis:i, keepdims:i");
  add("ConcatFromSequence", "input_sequence:seq(T) -> concat_result:T", "axis:i, new_axis:i");
  add("Optional", "input:V? -> output:V", "type:s", optional);
  add("OptionalGetElement", "input:V -> output:V", "", optional_get_element);
  add("OptionalHasElement", "input:V? -> output:bool", "", scalar_output);
}

}  // namespace hologram::graph::ops
