// Resize, and the form of it (and of Upsample) before opset 11.
#include <cmath>

#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kResized = kNumbers | kStrings | kBool | kComplex;

// floor(dim * scale): as the kernel computes it.
Dim scaled(const Dim& dim, float scale) {
  const double factor = static_cast<double>(scale);
  if (!dim.is_symbol()) {
    const double size = std::floor(static_cast<double>(dim.value()) * factor);
    return size < 1e12 ? Dim(static_cast<int64_t>(size)) : unknown_dim();  // the kernel refuses it
  }
  if (factor == std::floor(factor) && factor < 1e9) return dim * Dim(static_cast<int64_t>(factor));
  return unknown_dim();
}

// dims[axis[i]] times scale i. False where the scales are not known, or wrong: then the kernel
// says.
bool apply_scales(const Tensor* scales, std::span<const size_t> axes, std::vector<Dim>& dims) {
  if (!scales || scales->dtype != DType::f32 ||
      scales->count() != static_cast<int64_t>(axes.size()))
    return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const float scale = scales->as<float>()[i];
    if (!(scale > 0 && scale < 1e9f)) return false;
    dims[axes[i]] = scaled(dims[axes[i]], scale);
  }
  return true;
}

Status resize(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) return {};
  std::vector<Dim> dims = x->dims();
  std::vector<size_t> axes;
  if (c.attributes().has("axes")) {
    for (int64_t value : c.integers("axes")) {
      HOLOGRAM_TRY(const size_t axis, c.axis(value, x->rank()));
      axes.push_back(axis);
    }
  } else {
    for (size_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  }
  bool known = false;
  if (c.text("coordinate_transformation_mode") != "tf_crop_and_resize" || !c.has(2))
    known = apply_scales(c.constant(2), axes, dims);
  const auto* sizes = c.contents(3);
  if (!known && sizes && sizes->size() == axes.size() &&
      c.text("keep_aspect_ratio_policy", "stretch") == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) {
      const Dim& size = (*sizes)[i];
      if (!size.is_symbol() && size.value() < 0)
        return fail(ErrorCode::invalid_argument, "size {} for axis {}", size.value(), axes[i]);
      dims[axes[i]] = size;
    }
    known = true;
  }
  if (!known)
    for (size_t axis : axes) dims[axis] = unknown_dim();
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status resize_before_11(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) return {};
  std::vector<Dim> dims = x->dims();
  std::vector<size_t> axes;
  for (size_t i = 0; i < x->rank(); ++i) axes.push_back(i);
  if (!apply_scales(c.constant(1), axes, dims)) dims.assign(x->rank(), unknown_dim());
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

}  // namespace

void add_resize(OperatorTable& table) {
  table.add("Resize")
      .signature("X:T1, roi:T2?, scales:f32?, sizes:i64? -> Y:T1")
      .where("T1", kResized)
      .where("T2", kFloats)
      .attributes(
          "antialias:i, axes:is, coordinate_transformation_mode:s, cubic_coeff_a:f, "
          "exclude_outside:i, extrapolation_value:f, keep_aspect_ratio_policy:s, mode:s, "
          "nearest_mode:s")
      .infer(resize)
      .kernel();
  table.add("ResizeBefore11", "hologram")
      .signature("X:T, scales:f32 -> Y:T")
      .where("T", kResized)
      .attributes("mode:s")
      .infer(resize_before_11)
      .kernel();
}

}  // namespace hologram::graph::ops
