// Convolutions.
#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/ops/window.h"

namespace hologram::graph::ops {
namespace {

Status check_ranks(const Shape& x, const Shape& w) {
  if (x.rank() < 3 || x.rank() != w.rank())
    return fail(ErrorCode::shape_mismatch, "input {} and weights {}", x.to_string(), w.to_string());
  return {};
}

Status conv(InferContext& c) {
  const Shape *x = c.shape(0), *w = c.shape(1);
  if (!x && w && w->rank() >= 3) {
    // The weights say what the input must be.
    std::vector<Dim> dims(w->rank(), unknown_dim());
    dims[1] = (*w)[0];
    c.set_shape(0, Shape(std::move(dims)));
  }
  if (!x || !w) return {};
  HOLOGRAM_CHECK(check_ranks(*x, *w));
  HOLOGRAM_TRY(const auto kernel, kernel_of(c, w, x->rank()));
  HOLOGRAM_TRY(const Shape shape, windowed_shape(c, *x, (*w)[0], kernel, false));
  c.set_shape(0, shape);
  return {};
}

Status conv_transpose(InferContext& c) {
  const Shape *x = c.shape(0), *w = c.shape(1);
  if (!x || !w) return {};
  HOLOGRAM_CHECK(check_ranks(*x, *w));
  HOLOGRAM_TRY(const auto kernel, kernel_of(c, w, x->rank()));
  HOLOGRAM_TRY(const Shape shape,
               transposed_shape(c, *x, (*w)[1] * Dim(c.integer("group", 1)), kernel));
  c.set_shape(0, shape);
  return {};
}

Status col2im(InferContext& c) {
  const Shape* x = c.shape(0);
  const auto *image = c.contents(1), *block = c.contents(2);
  if (!x || x->rank() != 3 || !image || !block) return {};
  const Dim taps = product(*block);
  if (!taps.is_symbol() && taps.value() < 1)
    return fail(ErrorCode::invalid_argument, "block_shape has no elements");
  std::vector<Dim> dims = {(*x)[0], (*x)[1] / taps};
  dims.insert(dims.end(), image->begin(), image->end());
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status causal_conv(InferContext& c) {
  const Shape *x = c.shape(0), *w = c.shape(1);
  if (!x) return {};
  if (x->rank() != 3)
    return fail(ErrorCode::shape_mismatch, "input {}; [batch, channels, length] expected",
                x->to_string());
  c.set_shape(0, *x);
  if (w && w->rank() == 3) c.set_shape(1, Shape(std::vector<Dim>{(*x)[0], (*x)[1], (*w)[2] - 1}));
  return {};
}

}  // namespace

void add_convolution(OperatorTable& table) {
  table.add("Conv")
      .signature("X:T, W:T, B:T? -> Y:T")
      .where("T", kFloats)
      .attributes("auto_pad:s, dilations:is, group:i, kernel_shape:is, pads:is, strides:is")
      .infer(conv)
      .kernel();
  table.add("ConvTranspose")
      .signature("X:T, W:T, B:T? -> Y:T")
      .where("T", kFloats)
      .attributes(
          "auto_pad:s, dilations:is, group:i, kernel_shape:is, output_padding:is, "
          "output_shape:is, pads:is, strides:is")
      .infer(conv_transpose)
      .kernel();
  table.add("DeformConv")
      .signature("X:T, W:T, offset:T, B:T?, mask:T? -> Y:T")
      .where("T", kFloats)
      .attributes("dilations:is, group:i, kernel_shape:is, offset_group:i, pads:is, strides:is")
      .infer(conv)
      .kernel();
  table.add("Col2Im")
      .signature("input:T, image_shape:i64, block_shape:i64 -> output:T")
      .where("T", kNumbers | kBool | kComplex)
      .attributes("dilations:is, pads:is, strides:is")
      .infer(col2im)
      .kernel();
  table.add("CausalConvWithState")
      .signature("input:T, weight:T, bias:T?, past_state:T? -> output:T, present_state:T?")
      .where("T", {DType::f16, DType::bf16, DType::f32})
      .attributes("activation:s")
      .infer(causal_conv)
      .kernel();
}

}  // namespace hologram::graph::ops
