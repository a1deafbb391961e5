#include "backends/cpu/kernels/resize_plan.h"

#include <algorithm>
#include <cmath>

namespace hologram::kernels {
namespace {

// A choice among names; the error lists them.
template <typename E, size_t N>
Result<E> choose(const KernelContext& c, std::string_view attribute, std::string_view fallback,
                 const std::string_view (&names)[N]) {
  const std::string_view text = c.text(attribute, fallback);
  for (size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<E>(i);
  std::string all;
  for (size_t i = 0; i < N; ++i) all += (i ? ", " : "") + std::string(names[i]);
  return fail(ErrorCode::invalid_argument, "{} '{}'; supported: {}", attribute, text, all);
}

// The numbers of a small tensor of floats.
Result<size_t> read_numbers(const Tensor& t, std::span<double> to) {
  const int64_t count = t.count();
  if (count > static_cast<int64_t>(to.size()))
    return fail(ErrorCode::shape_mismatch, "{} entries; at most {} expected", count, to.size());
  for (int64_t i = 0; i < count; ++i) switch (t.dtype) {
      case DType::f32:
        to[i] = static_cast<double>(t.as<float>()[i]);
        break;
      case DType::f64:
        to[i] = t.as<double>()[i];
        break;
      default:
        return fail(ErrorCode::unsupported, "type {}; supported: f16, bf16, f32, f64",
                    name_of(t.dtype));
    }
  return static_cast<size_t>(count);
}

// The largest size an axis may get; beyond it the number of elements could overflow.
constexpr double kLargest = 1e12;

// "not_larger" and "not_smaller" give every named axis the same scale.
Status keep_aspect_ratio(bool smallest, std::span<const size_t> named,
                         std::span<const int64_t> sizes, ResizeAxes& result) {
  size_t best = 0;
  auto ratio = [&](size_t i) {
    return static_cast<double>(sizes[i]) / static_cast<double>(result.axis[named[i]].in);
  };
  for (size_t i = 1; i < named.size(); ++i)
    if (smallest ? ratio(i) < ratio(best) : ratio(i) > ratio(best)) best = i;
  const double numerator = static_cast<double>(sizes[best]);
  const double denominator = static_cast<double>(result.axis[named[best]].in);
  for (size_t i = 0; i < named.size(); ++i) {
    ResizeAxis& axis = result.axis[named[i]];
    axis.numerator = numerator;
    axis.denominator = denominator;
    const double size = static_cast<double>(axis.in) * numerator / denominator + 0.5;
    if (!(size < kLargest))
      return fail(ErrorCode::invalid_argument, "size {} for an axis of {}", size, axis.in);
    axis.out = static_cast<int64_t>(std::floor(size));
  }
  return {};
}

Status apply_scales(const Tensor& scales, bool crops, std::span<const size_t> named,
                    ResizeAxes& result) {
  double numbers[kMaxRank];
  HOLOGRAM_TRY(const size_t got, read_numbers(scales, numbers));
  if (got != named.size())
    return fail(ErrorCode::shape_mismatch, "scales has {} entries; {} expected", got, named.size());
  for (size_t i = 0; i < got; ++i) {
    ResizeAxis& axis = result.axis[named[i]];
    const double size =
        static_cast<double>(axis.in) * numbers[i] * (crops ? axis.roi_end - axis.roi_start : 1.0);
    if (!(numbers[i] > 0) || !(size >= 0 && size < kLargest))
      return fail(ErrorCode::invalid_argument, "scale {} for an axis of {}", numbers[i], axis.in);
    axis.numerator = numbers[i];
    axis.out = static_cast<int64_t>(std::floor(size));
  }
  return {};
}

double cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// How much the filter is stretched by antialiasing.
double stretch(const ResizeMode& mode, const ResizeAxis& axis) {
  // Only a region of interest gives an axis with elements a scale below one a whole axis: any
  // number then, and a filter that is walked for ever.
  const double most = 2 * static_cast<double>(axis.in) + 2;
  return mode.antialias ? std::clamp(1 / axis.scale(), 1.0, most) : 1.0;
}

double support(const ResizeMode& mode) { return mode.kind == ResizeMode::Kind::linear ? 1 : 2; }

}  // namespace

Result<ResizeMode> ResizeMode::of(const KernelContext& c) {
  ResizeMode mode;
  static constexpr std::string_view kKinds[] = {"nearest", "linear", "cubic"};
  static constexpr std::string_view kCoordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",  "align_corners",
      "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn"};
  static constexpr std::string_view kNearest[] = {"round_prefer_floor", "round_prefer_ceil",
                                                  "floor", "ceil"};
  HOLOGRAM_TRY(mode.kind, choose<Kind>(c, "mode", "nearest", kKinds));
  HOLOGRAM_TRY(mode.coordinates, choose<Coordinates>(c, "coordinate_transformation_mode",
                                                     "half_pixel", kCoordinates));
  HOLOGRAM_TRY(mode.nearest, choose<Nearest>(c, "nearest_mode", "round_prefer_floor", kNearest));
  mode.antialias = c.integer("antialias") != 0 && mode.kind != Kind::nearest;
  mode.exclude_outside = c.integer("exclude_outside") != 0;
  mode.cubic_a = c.number("cubic_coeff_a", -0.75);
  mode.extrapolation = c.number("extrapolation_value", 0);
  return mode;
}

Result<ResizeMode> ResizeMode::before_11(const KernelContext& c) {
  ResizeMode mode;
  static constexpr std::string_view kKinds[] = {"nearest", "linear"};
  HOLOGRAM_TRY(mode.kind, choose<Kind>(c, "mode", "nearest", kKinds));
  mode.coordinates = Coordinates::asymmetric;
  mode.nearest = Nearest::floor_growing_ceil_shrinking;
  return mode;
}

Result<ResizeAxes> resize_axes(const KernelContext& c, const ResizeMode& mode) {
  const Dims& in = c.input(0).dims;
  const size_t rank = in.rank();
  ResizeAxes result;
  for (size_t i = 0; i < rank; ++i) result.axis[i].in = result.axis[i].out = in[i];

  size_t named[kMaxRank], count = rank;
  const auto axes = c.integers("axes");
  for (size_t i = 0; i < rank; ++i) named[i] = i;
  if (c.attributes().has("axes")) {
    if (axes.size() > rank)
      return fail(ErrorCode::shape_mismatch, "{} axes of an input {}", axes.size(), in.to_string());
    count = axes.size();
    for (size_t i = 0; i < count; ++i) {
      HOLOGRAM_TRY(named[i], normalise_axis(axes[i], rank));
      for (size_t k = 0; k < i; ++k)
        if (named[k] == named[i])
          return fail(ErrorCode::invalid_argument, "axis {} is named twice", axes[i]);
    }
  }

  // An empty tensor is how older models leave an input out.
  auto given = [&](size_t i) { return c.has_input(i) && c.input(i).count() > 0; };
  auto wrong_count = [&](std::string_view what, size_t got, size_t want) {
    return fail(ErrorCode::shape_mismatch, "{} has {} entries; {} expected", what, got, want);
  };
  double numbers[2 * kMaxRank];
  if (mode.crops()) {
    if (!given(1)) return fail(ErrorCode::invalid_argument, "tf_crop_and_resize needs input roi");
    HOLOGRAM_TRY(const size_t got, read_numbers(c.input(1), numbers));
    if (got != 2 * count) return wrong_count("roi", got, 2 * count);
    for (size_t i = 0; i < count; ++i) {
      result.axis[named[i]].roi_start = numbers[i];
      result.axis[named[i]].roi_end = numbers[i + count];
    }
  }
  if (given(2) == given(3) && count > 0)
    return fail(ErrorCode::invalid_argument, "exactly one of scales and sizes must be given");
  if (given(2)) {
    HOLOGRAM_CHECK(apply_scales(c.input(2), mode.crops(), std::span(named, count), result));
  } else if (count > 0) {
    HOLOGRAM_TRY(const Dims sizes, c.input_integers(3));
    if (sizes.rank() != count) return wrong_count("sizes", sizes.rank(), count);
    for (size_t i = 0; i < count; ++i) {
      ResizeAxis& axis = result.axis[named[i]];
      if (sizes[i] < 0 || static_cast<double>(sizes[i]) > kLargest ||
          (axis.in == 0 && sizes[i] > 0))
        return fail(ErrorCode::invalid_argument, "size {} for an axis of {}", sizes[i], axis.in);
      axis.out = sizes[i];
      axis.numerator = static_cast<double>(sizes[i]);
      axis.denominator = static_cast<double>(axis.in);
    }
    const auto policy = c.text("keep_aspect_ratio_policy", "stretch");
    if (policy == "not_larger" || policy == "not_smaller") {
      HOLOGRAM_CHECK(
          keep_aspect_ratio(policy == "not_larger", std::span(named, count), sizes, result));
    } else if (policy != "stretch") {
      return fail(ErrorCode::invalid_argument,
                  "keep_aspect_ratio_policy '{}'; supported: stretch, not_larger, not_smaller",
                  policy);
    }
  }
  for (size_t i = 0; i < rank; ++i) result.output.push_back(result.axis[i].out);
  return result;
}

Result<ResizeAxes> scaled_axes(const KernelContext& c) {
  const Dims& in = c.input(0).dims;
  ResizeAxes result;
  size_t named[kMaxRank];
  for (size_t i = 0; i < in.rank(); ++i) {
    result.axis[i].in = result.axis[i].out = in[i];
    named[i] = i;
  }
  HOLOGRAM_CHECK(apply_scales(c.input(1), false, std::span(named, in.rank()), result));
  for (size_t i = 0; i < in.rank(); ++i) result.output.push_back(result.axis[i].out);
  return result;
}

double original_coordinate(const ResizeMode& mode, const ResizeAxis& axis, int64_t at) {
  const double x = static_cast<double>(at), in = static_cast<double>(axis.in);
  auto unscale = [&](double v) { return v * axis.denominator / axis.numerator; };
  // A scale gives a width that need not be whole: the standard's own cases use it as it is.
  const double width = in * axis.numerator / axis.denominator;
  switch (mode.coordinates) {
    case ResizeMode::Coordinates::half_pixel:
      return unscale(x + 0.5) - 0.5;
    case ResizeMode::Coordinates::half_pixel_symmetric:
      return in / 2 * (1 - static_cast<double>(axis.out) / width) + unscale(x + 0.5) - 0.5;
    case ResizeMode::Coordinates::pytorch_half_pixel:
      return axis.out > 1 ? unscale(x + 0.5) - 0.5 : 0;
    case ResizeMode::Coordinates::align_corners:
      return axis.out > 1 ? x * (in - 1) / (width - 1) : 0;
    case ResizeMode::Coordinates::tf_half_pixel_for_nn:
      return unscale(x + 0.5);
    case ResizeMode::Coordinates::asymmetric:
      return unscale(x);
    case ResizeMode::Coordinates::tf_crop_and_resize: {
      const double start = axis.roi_start, end = axis.roi_end, out = static_cast<double>(axis.out);
      return axis.out > 1 ? start * (in - 1) + x * (end - start) * (in - 1) / (out - 1)
                          : 0.5 * (start + end) * (in - 1);
    }
  }
  return 0;
}

namespace {

bool extrapolated(const ResizeMode& mode, const ResizeAxis& axis, double x) {
  return mode.crops() && (x < 0 || x > static_cast<double>(axis.in - 1));
}

}  // namespace

void nearest_indices(const ResizeMode& mode, const ResizeAxis& axis, int64_t* indices) {
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = original_coordinate(mode, axis, i);
    double nearest = 0;
    switch (mode.nearest) {
      case ResizeMode::Nearest::round_prefer_floor:
        nearest = std::ceil(x - 0.5);
        break;
      case ResizeMode::Nearest::round_prefer_ceil:
        nearest = std::floor(x + 0.5);
        break;
      case ResizeMode::Nearest::floor:
        nearest = std::floor(x);
        break;
      case ResizeMode::Nearest::ceil:
        nearest = std::ceil(x);
        break;
      case ResizeMode::Nearest::floor_growing_ceil_shrinking:
        nearest = axis.scale() < 1 ? std::ceil(x) : std::floor(x);
        break;
    }
    const double last = static_cast<double>(axis.in - 1);
    indices[i] = extrapolated(mode, axis, x)
                     ? -1
                     : static_cast<int64_t>(nearest > 0 ? std::min(nearest, last) : 0.0);
  }
}

int64_t tap_count(const ResizeMode& mode, const ResizeAxis& axis) {
  const double reach = support(mode) * stretch(mode, axis);
  // Beyond both edges every tap falls on the edge element.
  return static_cast<int64_t>(std::min(2 * std::ceil(reach), 2 * static_cast<double>(axis.in) + 4));
}

void weighted_taps(const ResizeMode& mode, const ResizeAxis& axis, int64_t taps, int64_t* indices,
                   double* weights) {
  const double wide = stretch(mode, axis), reach = support(mode) * wide;
  const int64_t last = axis.in - 1;
  for (int64_t i = 0; i < axis.out; ++i, indices += taps, weights += taps) {
    const double x = original_coordinate(mode, axis, i);
    std::fill_n(indices, taps, int64_t{0});
    std::fill_n(weights, taps, 0.0);
    if (extrapolated(mode, axis, x)) {
      indices[0] = -1;
      continue;
    }
    // Elements that share an edge element after clamping are added up there, so a filter that
    // reaches far outside still fits in the taps.
    int64_t used = 0;
    double sum = 0;
    for (double at = std::floor(x - reach) + 1; at < x + reach; ++at) {
      const double distance = (at - x) / wide;
      const double weight = mode.kind == ResizeMode::Kind::linear
                                ? std::max(0.0, 1 - std::abs(distance))
                                : cubic(distance, mode.cubic_a);
      const bool outside = at < 0 || at > static_cast<double>(last);
      if (weight == 0 || (outside && mode.exclude_outside)) continue;
      const int64_t index =
          std::clamp<int64_t>(static_cast<int64_t>(std::clamp(at, -1e15, 1e15)), 0, last);
      sum += weight;
      if (used == 0 || indices[used - 1] != index) indices[used++] = index;
      weights[used - 1] += weight;
    }
    if (sum != 0 && (mode.antialias || mode.exclude_outside))
      for (int64_t t = 0; t < used; ++t) weights[t] /= sum;
  }
}

}  // namespace hologram::kernels
