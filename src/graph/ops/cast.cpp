// From one element type to another.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

using isa::Register;
using P = PointwiseContext;

constexpr TypeSet kCastable = kCompute | kSmallFloats | kSmallIntegers | kStrings;

// `to` holds a DType's code: the reader of models has translated ONNX's own numbers.
Result<DType> target_type(InferContext& c, TypeSet types) {
  const int64_t code = c.integer("to", -1);
  auto type = code < 0 || code > 255 ? std::nullopt : dtype_from_code(static_cast<uint8_t>(code));
  if (!type) return fail(ErrorCode::invalid_argument, "attribute 'to' names no element type");
  if (!types.has(*type))
    return fail(ErrorCode::unsupported, "a result of type {} is not supported; supported: {}",
                name_of(*type), types.to_string());
  return *type;
}

Status check_rounding(InferContext& c) {
  const std::string_view mode = c.text("round_mode", "up");
  if (mode == "up" || mode == "down" || mode == "nearest") return {};
  return fail(ErrorCode::invalid_argument, "round_mode '{}'; supported: up, down, nearest", mode);
}

Status cast_type(InferContext& c) {
  HOLOGRAM_TRY(const DType type, target_type(c, kCastable));
  HOLOGRAM_CHECK(check_rounding(c));
  c.set_dtype(0, type);
  if (c.shape(0)) c.set_shape(0, *c.shape(0));
  if (const auto* contents = c.contents(0); contents && (type == DType::i64 || type == DType::i32))
    c.set_contents(0, *contents);
  return {};
}

Status bit_cast_type(InferContext& c) {
  HOLOGRAM_TRY(const DType type, target_type(c, kFixedSize));
  if (bits_of(type) != bits_of(c.dtype(0)))
    return fail(ErrorCode::type_mismatch, "{} has {} bits, {} has {}", name_of(c.dtype(0)),
                bits_of(c.dtype(0)), name_of(type), bits_of(type));
  c.set_dtype(0, type);
  if (c.shape(0)) c.set_shape(0, *c.shape(0));
  return {};
}

Register cast(P& p) { return p.b.convert(p.in(0), p.result); }

Result<std::vector<ValueId>> cast_like(ComposeContext& c) {
  return std::vector<ValueId>{c.op("Cast")
                                  .input(c.in(0))
                                  .attribute("to", static_cast<int64_t>(c.type(1).dtype))
                                  .attributes(c.attributes())};
}

}  // namespace

void add_cast(OperatorTable& table) {
  table.add("Cast")
      .signature("input:T1 -> output:T2")
      .where("T1", kCastable)
      .attributes("to:i, saturate:i, round_mode:s")
      .infer(cast_type)
      .pointwise(cast)
      .kernel();
  table.add("CastLike")
      .signature("input:T1, target_type:T2 -> output:T2")
      .where("T1", kCastable)
      .where("T2", kCastable)
      .attributes("saturate:i, round_mode:s")
      .infer(same_shape_as_first)
      .compose(cast_like);
  table.add("BitCast")
      .signature("input:T1 -> output:T2")
      .where("T1", kFixedSize)
      .attributes("to:i")
      .infer(bit_cast_type)
      .kernel();
}

}  // namespace hologram::graph::ops
