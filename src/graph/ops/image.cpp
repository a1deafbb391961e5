// Operators on images: sampling at positions, boxes, decoding.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status affine_grid(InferContext& c) {
  const auto* size = c.contents(1);
  if (!size || size->size() < 4 || size->size() > 5) return {};  // the kernel says what is wrong
  std::vector<Dim> dims = {(*size)[0]};
  dims.insert(dims.end(), size->begin() + 2, size->end());
  dims.push_back(static_cast<int64_t>(size->size()) - 2);
  for (const Dim& d : dims)
    if (!d.is_symbol() && d.value() < 0)
      return fail(ErrorCode::invalid_argument, "dimension {} in size", d.value());
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status grid_sample(InferContext& c) {
  const Shape *x = c.shape(0), *grid = c.shape(1);
  if (!x || !grid) return {};
  if (x->rank() < 3 || grid->rank() != x->rank())
    return fail(ErrorCode::shape_mismatch, "input {} and grid {}", x->to_string(),
                grid->to_string());
  std::vector<Dim> dims = {(*x)[0], (*x)[1]};
  dims.insert(dims.end(), grid->begin() + 1, grid->end() - 1);
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status roi_align(InferContext& c) {
  const Shape *x = c.shape(0), *rois = c.shape(1);
  const int64_t height = c.integer("output_height", 1), width = c.integer("output_width", 1);
  if (height < 1 || width < 1)
    return fail(ErrorCode::invalid_argument, "an output of {} x {}", height, width);
  if (x && x->rank() == 4 && rois && rois->rank() == 2)
    c.set_shape(0, Shape(std::vector<Dim>{(*rois)[0], (*x)[1], height, width}));
  return {};
}

Status non_max_suppression(InferContext& c) {
  c.set_shape(0, Shape(std::vector<Dim>{unknown_dim(), 3}));
  return {};
}

Status image_decoder(InferContext& c) {
  c.set_shape(0, Shape(std::vector<Dim>{unknown_dim(), unknown_dim(),
                                        c.text("pixel_format", "RGB") == "Grayscale" ? 1 : 3}));
  return {};
}

}  // namespace

void add_image(OperatorTable& table) {
  table.add("AffineGrid")
      .signature("theta:T, size:i64 -> grid:T")
      .where("T", kFloats)
      .attributes("align_corners:i")
      .infer(affine_grid)
      .kernel();
  table.add("GridSample")
      .signature("X:T1, grid:T2 -> Y:T1")
      .where("T1", kNumbers | kStrings | kBool | kComplex)
      .where("T2", kFloats)
      .attributes("align_corners:i, mode:s, padding_mode:s")
      .infer(grid_sample)
      .kernel();
  table.add("RoiAlign")
      .signature("X:T, rois:T, batch_indices:i64 -> Y:T")
      .where("T", kFloats)
      .attributes(
          "coordinate_transformation_mode:s, mode:s, output_height:i, output_width:i, "
          "sampling_ratio:i, spatial_scale:f")
      .infer(roi_align)
      .kernel();
  table.add("NonMaxSuppression")
      .signature(
          "boxes:f32, scores:f32, max_output_boxes_per_class:i64?, iou_threshold:f32?, "
          "score_threshold:f32? -> selected_indices:i64")
      .attributes("center_point_box:i")
      .infer(non_max_suppression)
      .kernel();
  table.add("ImageDecoder")
      .signature("encoded_stream:u8 -> image:u8")
      .attributes("pixel_format:s")
      .infer(image_decoder)
      .kernel();
}

}  // namespace hologram::graph::ops
