// Convolutions.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status conv(InferContext& c) {
  const Shape *x = c.shape(0), *w = c.shape(1);
  if (!x || !w) return {};
  if (x->rank() < 3 || x->rank() != w->rank())
    return fail(ErrorCode::shape_mismatch, "input {} and weights {}", x->to_string(),
                w->to_string());
  const size_t spatial = x->rank() - 2;
  auto kernel = c.integers("kernel_shape"), strides = c.integers("strides");
  auto dilations = c.integers("dilations"), pads = c.integers("pads");
  const auto padding = c.text("auto_pad", "NOTSET");
  std::vector<Dim> dims = {(*x)[0], (*w)[0]};
  for (size_t i = 0; i < spatial; ++i) {
    const Dim size = kernel.empty() ? (*w)[i + 2] : Dim(kernel[i]);
    const Dim reach = (size - 1) * Dim(dilations.empty() ? 1 : dilations[i]) + 1;
    const Dim stride = strides.empty() ? 1 : strides[i];
    const Dim& in = (*x)[i + 2];
    if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      dims.push_back(ceil_div(in, stride));
    } else {
      const int64_t pad = padding == "VALID" || pads.empty() ? 0 : pads[i] + pads[i + spatial];
      dims.push_back((in + Dim(pad) - reach) / stride + 1);
    }
  }
  c.set_shape(0, Shape(std::move(dims)));
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
}

}  // namespace hologram::graph::ops
