// Quantisation: to and from small types by a scale and a zero point, and products of what results.
#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/ops/linear_algebra.h"
#include "graph/ops/window.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kFloat8 = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};
constexpr TypeSet kBytes = {DType::i8, DType::u8};
constexpr TypeSet kQuantised =
    kBytes | kFloat8 | kSmallIntegers | TypeSet{DType::i16, DType::u16, DType::f4e2m1};
constexpr TypeSet kResults = {DType::f16, DType::bf16, DType::f32};

// The type an attribute names; nothing where it is absent or 0.
Result<std::optional<DType>> type_attribute(const InferContext& c, std::string_view name) {
  const int64_t code = c.integer(name, 0);
  if (!c.attributes().has(name) || code == 0) return std::optional<DType>();
  if (code > 0 && code < 256)
    if (const auto type = dtype_from_code(static_cast<uint8_t>(code)))
      return std::optional<DType>(*type);
  return fail(ErrorCode::invalid_argument, "{} {} is not an element type", name, code);
}

Status quantize(InferContext& c) {
  HOLOGRAM_TRY(const auto asked, type_attribute(c, "output_dtype"));
  if (asked && c.has(2) && *asked != c.dtype(2))
    return fail(ErrorCode::type_mismatch, "output_dtype {} but a zero point of type {}",
                name_of(*asked), name_of(c.dtype(2)));
  const DType type = asked ? *asked : c.has(2) ? c.dtype(2) : DType::u8;
  if (!kQuantised.has(type))
    return fail(ErrorCode::unsupported, "output_dtype {}; supported: {}", name_of(type),
                kQuantised.to_string());
  HOLOGRAM_TRY(const auto precision, type_attribute(c, "precision"));
  if (precision && !kResults.has(*precision))
    return fail(ErrorCode::unsupported, "precision {}; supported: {}", name_of(*precision),
                kResults.to_string());
  c.set_dtype(0, type);
  return same_shape_as_first(c);
}

Status dequantize(InferContext& c) {
  HOLOGRAM_TRY(const auto asked, type_attribute(c, "output_dtype"));
  const DType type = asked ? *asked : c.dtype(1);
  if (!kResults.has(type))
    return fail(ErrorCode::unsupported, "a result of type {}; supported: {}", name_of(type),
                kResults.to_string());
  c.set_dtype(0, type);
  return same_shape_as_first(c);
}

Status dynamic_quantize(InferContext& c) {
  c.set_shape(1, Shape(std::vector<Dim>{}));
  c.set_shape(2, Shape(std::vector<Dim>{}));
  if (const Shape* x = c.shape(0)) c.set_shape(0, *x);
  return {};
}

Status matmul(InferContext& c) { return matmul_shape(c, 0, 1); }
Status quantised_matmul(InferContext& c) { return matmul_shape(c, 0, 3); }

Status conv_of(InferContext& c, size_t weights) {
  const Shape *x = c.shape(0), *w = c.shape(weights);
  if (!x || !w) return {};
  if (x->rank() < 3 || x->rank() != w->rank())
    return fail(ErrorCode::shape_mismatch, "input {} and weights {}", x->to_string(),
                w->to_string());
  HOLOGRAM_TRY(const auto kernel, kernel_of(c, w, x->rank()));
  HOLOGRAM_TRY(const Shape shape, windowed_shape(c, *x, (*w)[0], kernel, false));
  c.set_shape(0, shape);
  return {};
}

Status conv(InferContext& c) { return conv_of(c, 1); }
Status quantised_conv(InferContext& c) { return conv_of(c, 3); }

}  // namespace

void add_quantisation(OperatorTable& table) {
  table.add("QuantizeLinear")
      .signature("x:T1, y_scale:T2, y_zero_point:T3? -> y:T4")
      .where("T1", kResults | TypeSet{DType::i32})
      .where("T2", kResults | TypeSet{DType::i32, DType::f8e8m0})
      .where("T3", kQuantised)
      .where("T4", kQuantised)
      .attributes("axis:i, block_size:i, output_dtype:i, precision:i, saturate:i")
      .infer(quantize)
      .kernel();
  table.add("DequantizeLinear")
      .signature("x:T1, x_scale:T2, x_zero_point:T1? -> y:T3")
      .where("T1", kQuantised | TypeSet{DType::i32})
      .where("T2", kResults | TypeSet{DType::f8e8m0})
      .where("T3", kResults)
      .attributes("axis:i, block_size:i, output_dtype:i")
      .infer(dequantize)
      .kernel();
  table.add("DynamicQuantizeLinear")
      .signature("x:f32 -> y:u8, y_scale:f32, y_zero_point:u8")
      .infer(dynamic_quantize)
      .kernel();
  table.add("MatMulInteger")
      .signature("A:T1, B:T2, a_zero_point:T1?, b_zero_point:T2? -> Y:i32")
      .where("T1", kBytes)
      .where("T2", kBytes)
      .infer(matmul)
      .kernel();
  table.add("QLinearMatMul")
      .signature(
          "a:T1, a_scale:TS, a_zero_point:T1, b:T2, b_scale:TS, b_zero_point:T2, y_scale:TS, "
          "y_zero_point:T3 -> y:T3")
      .where("T1", kBytes | kFloat8)
      .where("T2", kBytes | kFloat8)
      .where("T3", kBytes | kFloat8)
      .where("TS", kResults)
      .infer(quantised_matmul)
      .kernel();
  table.add("ConvInteger")
      .signature("x:T1, w:T2, x_zero_point:T1?, w_zero_point:T2? -> y:i32")
      .where("T1", kBytes)
      .where("T2", kBytes)
      .attributes("auto_pad:s, dilations:is, group:i, kernel_shape:is, pads:is, strides:is")
      .infer(conv)
      .kernel();
  table.add("QLinearConv")
      .signature(
          "x:T1, x_scale:f32, x_zero_point:T1, w:T2, w_scale:f32, w_zero_point:T2, y_scale:f32, "
          "y_zero_point:T3, B:i32? -> y:T3")
      .where("T1", kBytes)
      .where("T2", kBytes)
      .where("T3", kBytes)
      .attributes("auto_pad:s, dilations:is, group:i, kernel_shape:is, pads:is, strides:is")
      .infer(quantised_conv)
      .kernel();
}

}  // namespace hologram::graph::ops
