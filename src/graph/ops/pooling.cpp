// Pools: windows that slide, whole planes, regions.
#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/ops/window.h"

namespace hologram::graph::ops {
namespace {

Status pool(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) return {};
  if (x->rank() < 3)
    return fail(ErrorCode::shape_mismatch, "input {}; batch, channels and spatial axes expected",
                x->to_string());
  HOLOGRAM_TRY(const auto kernel, kernel_of(c, nullptr, x->rank()));
  HOLOGRAM_TRY(const Shape shape,
               windowed_shape(c, *x, (*x)[1], kernel, c.integer("ceil_mode") != 0));
  for (size_t i = 0; i < c.output_count(); ++i) c.set_shape(i, shape);
  return {};
}

Status global_pool(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) return {};
  if (x->rank() < 3)
    return fail(ErrorCode::shape_mismatch, "input {}; batch, channels and spatial axes expected",
                x->to_string());
  std::vector<Dim> dims(x->rank(), Dim(1));
  dims[0] = (*x)[0];
  dims[1] = (*x)[1];
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status unpool(InferContext& c) {
  const Shape* x = c.shape(0);
  if (c.has(2)) {
    if (const auto* shape = c.contents(2)) c.set_shape(0, Shape(*shape));
    return {};
  }
  if (!x) return {};
  HOLOGRAM_TRY(const auto kernel, kernel_of(c, nullptr, x->rank()));
  HOLOGRAM_TRY(const Shape shape,
               transposed_shape(c, *x, x->rank() > 1 ? (*x)[1] : Dim(1), kernel));
  c.set_shape(0, shape);
  return {};
}

Status max_roi_pool(InferContext& c) {
  const Shape *x = c.shape(0), *rois = c.shape(1);
  const auto pooled = c.integers("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return fail(ErrorCode::invalid_argument, "pooled_shape has {} entries; two sizes expected",
                pooled.size());
  if (x && x->rank() == 4 && rois && rois->rank() == 2)
    c.set_shape(0, Shape(std::vector<Dim>{(*rois)[0], (*x)[1], pooled[0], pooled[1]}));
  return {};
}

}  // namespace

void add_pooling(OperatorTable& table) {
  const std::string window =
      "auto_pad:s, ceil_mode:i, dilations:is, kernel_shape:is, pads:is, strides:is";
  table.add("MaxPool")
      .signature("X:T -> Y:T, Indices:i64?")
      .where("T", kFloats | TypeSet{DType::i8, DType::u8})
      .attributes(window + ", storage_order:i")
      .infer(pool)
      .kernel();
  table.add("AveragePool")
      .signature("X:T -> Y:T")
      .where("T", kFloats)
      .attributes(window + ", count_include_pad:i")
      .infer(pool)
      .kernel();
  table.add("LpPool")
      .signature("X:T -> Y:T")
      .where("T", kFloats)
      .attributes(window + ", p:i")
      .infer(pool)
      .kernel();
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool"})
    table.add(name).signature("X:T -> Y:T").where("T", kFloats).infer(global_pool).kernel();
  table.add("GlobalLpPool")
      .signature("X:T -> Y:T")
      .where("T", kFloats)
      .attributes("p:i")
      .infer(global_pool)
      .kernel();
  table.add("MaxUnpool")
      .signature("X:T, I:i64, output_shape:i64? -> output:T")
      .where("T", kFloats)
      .attributes("kernel_shape:is, pads:is, strides:is")
      .infer(unpool)
      .kernel();
  table.add("MaxRoiPool")
      .signature("X:T, rois:T -> Y:T")
      .where("T", kFloats)
      .attributes("pooled_shape:is, spatial_scale:f")
      .infer(max_roi_pool)
      .kernel();
}

}  // namespace hologram::graph::ops
