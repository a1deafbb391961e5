// ResizePlan: which elements of an input, with which weights, make each element of a resized axis.
#pragma once

#include <string_view>

#include "backends/cpu/kernels/kernel.h"

namespace hologram::kernels {

// How one axis changes.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  // `scale` as the standard means it is numerator / denominator; kept as two numbers so that sizes
  // give exact coordinates.
  double numerator = 1, denominator = 1;
  double roi_start = 0, roi_end = 1;

  double scale() const { return numerator / denominator; }
  bool resized() const { return in != out || numerator != denominator; }
};

// The attributes, read once.
struct ResizeMode {
  enum class Kind { nearest, linear, cubic } kind = Kind::nearest;
  enum class Coordinates {
    half_pixel,
    half_pixel_symmetric,
    pytorch_half_pixel,
    align_corners,
    asymmetric,
    tf_crop_and_resize,
    tf_half_pixel_for_nn  // of opset 11 and 12
  } coordinates = Coordinates::half_pixel;
  // The last one is what Resize did before opset 11.
  enum class Nearest {
    round_prefer_floor,
    round_prefer_ceil,
    floor,
    ceil,
    floor_growing_ceil_shrinking
  } nearest = Nearest::round_prefer_floor;
  bool antialias = false, exclude_outside = false;
  double cubic_a = -0.75, extrapolation = 0;

  bool crops() const { return coordinates == Coordinates::tf_crop_and_resize; }
  static Result<ResizeMode> of(const KernelContext& c);
  // Of Upsample, and of Resize before opset 11: coordinates are asymmetric.
  static Result<ResizeMode> before_11(const KernelContext& c);
};

// The axes of a Resize node, from its inputs: one entry an axis of the tensor.
struct ResizeAxes {
  ResizeAxis axis[kMaxRank];
  Dims output;
};
Result<ResizeAxes> resize_axes(const KernelContext& c, const ResizeMode& mode);
// The same for the form before opset 11, whose second input is a scale for every axis.
Result<ResizeAxes> scaled_axes(const KernelContext& c);

// Where position `at` of the resized axis lies in the original.
double original_coordinate(const ResizeMode& mode, const ResizeAxis& axis, int64_t at);

// The nearest element for every position; -1 where it is extrapolated.
void nearest_indices(const ResizeMode& mode, const ResizeAxis& axis, int64_t* indices);

// Taps a position of a linear or cubic axis; at least that of every position.
int64_t tap_count(const ResizeMode& mode, const ResizeAxis& axis);
// indices[position * taps + t] and weights[...]; indices are inside the axis, unused weights 0. The
// index of an extrapolated position's first tap is -1.
void weighted_taps(const ResizeMode& mode, const ResizeAxis& axis, int64_t taps, int64_t* indices,
                   double* weights);

}  // namespace hologram::kernels
