#include "onnx/canonical.h"
#include "onnx/model.h"

namespace hologram::onnx {
namespace {

// Before 13 the axes were an attribute.
Status axes_to_input(CanonicalContext& c) {
  c.integers_to_input("axes", 1);
  return {};
}

// Before 10 everything was an attribute.
Status slice_bounds(CanonicalContext& c) {
  if (!c.attributes().has("starts") || !c.attributes().has("ends"))
    return fail(ErrorCode::corrupt, "a Slice of opset {} has attributes starts and ends",
                c.opset());
  c.integers_to_input("starts", 1);
  c.integers_to_input("ends", 2);
  c.integers_to_input("axes", 3);
  return {};
}

// Before 13 the sizes were an attribute.
Status split_sizes(CanonicalContext& c) {
  c.integers_to_input("split", 1);
  return {};
}

// Before 11 the pads and the value were attributes; the value is a number of no particular type.
Status pad_with_number(CanonicalContext& c) {
  if (!c.attributes().has("pads"))
    return fail(ErrorCode::corrupt, "a Pad of opset {} has an attribute pads", c.opset());
  c.integers_to_input("pads", 1);
  c.node.op = "PadWithNumber";
  c.node.domain = "hologram";
  return {};
}

// Renamed in 11.
Status scatter_elements(CanonicalContext& c) {
  c.node.op = "ScatterElements";
  return {};
}

// Before 11 a negative index was outside.
Status one_hot_from_zero(CanonicalContext& c) {
  c.node.op = "OneHotFromZero";
  c.node.domain = "hologram";
  return {};
}

// Before 4 the axis was 1 unless said.
Status concat_axis(CanonicalContext& c) {
  if (!c.attributes().has("axis")) c.node.attributes.set("axis", int64_t{1});
  return {};
}

// Before 5 the shape was an attribute.
Status reshape_shape(CanonicalContext& c) {
  c.integers_to_input("shape", 1);
  return {};
}

// Before 6 the type was named.
Status cast_by_name(CanonicalContext& c) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"FLOAT", DType::f32},    {"DOUBLE", DType::f64}, {"FLOAT16", DType::f16},
      {"INT8", DType::i8},      {"INT16", DType::i16},  {"INT32", DType::i32},
      {"INT64", DType::i64},    {"UINT8", DType::u8},   {"UINT16", DType::u16},
      {"UINT32", DType::u32},   {"UINT64", DType::u64}, {"BOOL", DType::boolean},
      {"STRING", DType::string}};
  for (const auto& [name, type] : kNames)
    if (c.attributes().text("to") == name) {
      c.node.attributes.set("to", static_cast<int64_t>(type));
      return {};
    }
  return fail(ErrorCode::invalid_argument, "a Cast of opset {} to '{}', which is no type",
              c.opset(), c.attributes().text("to"));
}

constexpr Rewrite kRewrites[] = {
    {"Cast", "", 6, cast_by_name},         {"Concat", "", 4, concat_axis},
    {"OneHot", "", 11, one_hot_from_zero}, {"Reshape", "", 5, reshape_shape},
    {"Pad", "", 11, pad_with_number},      {"Scatter", "", kNewestOpset + 1, scatter_elements},
    {"Slice", "", 10, slice_bounds},       {"Split", "", 13, split_sizes},
    {"Squeeze", "", 13, axes_to_input},    {"Unsqueeze", "", 13, axes_to_input},
};

}  // namespace

std::span<const Rewrite> movement_rewrites() { return kRewrites; }

}  // namespace hologram::onnx
