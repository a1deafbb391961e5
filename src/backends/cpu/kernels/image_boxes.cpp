// Operators on boxes: NonMaxSuppression and RoiAlign.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/image.h"

namespace hologram::kernels {
namespace {

struct Box {
  float x1, y1, x2, y2;
  float area() const { return (x2 - x1) * (y2 - y1); }
};

Box read_box(const float* v, bool center) {
  if (center) return {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
  // Any two opposite corners.
  return {std::min(v[1], v[3]), std::min(v[0], v[2]), std::max(v[1], v[3]), std::max(v[0], v[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (!(width > 0 && height > 0)) return false;
  const float both = width * height, either = a.area() + b.area() - both;
  return a.area() > 0 && b.area() > 0 && either > 0 && both / either > threshold;
}

Result<float> scalar(const KernelContext& c, size_t input, float fallback) {
  if (!c.has_input(input)) return fallback;
  if (c.input(input).count() != 1)
    return fail(ErrorCode::shape_mismatch, "input {} is {}; a scalar expected", input,
                c.input(input).dims.to_string());
  return *c.input(input).as<float>();
}

}  // namespace

Status non_max_suppression(KernelContext& c) {
  const Tensor &boxes = c.input(0), &scores = c.input(1);
  if (boxes.dims.rank() != 3 || scores.dims.rank() != 3 || boxes.dims[2] != 4 ||
      scores.dims[0] != boxes.dims[0] || scores.dims[2] != boxes.dims[1])
    return fail(ErrorCode::shape_mismatch,
                "boxes {} and scores {}; [N, boxes, 4] and [N, classes, boxes] expected",
                boxes.dims.to_string(), scores.dims.to_string());
  const int64_t batches = boxes.dims[0], count = boxes.dims[1], classes = scores.dims[1];
  HOLOGRAM_TRY(const Dims limits, c.input_integers(2));
  if (limits.rank() > 1)
    return fail(ErrorCode::shape_mismatch, "max_output_boxes_per_class has {} entries",
                limits.rank());
  const int64_t limit =
      std::clamp<int64_t>(limits.rank() == 0 ? 0 : limits[0], 0, std::max<int64_t>(count, 0));
  HOLOGRAM_TRY(const float iou, scalar(c, 3, 0));
  HOLOGRAM_TRY(const float least, scalar(c, 4, -std::numeric_limits<float>::infinity()));
  if (!(iou >= 0 && iou <= 1))
    return fail(ErrorCode::invalid_argument, "iou_threshold {}; 0 to 1 expected", iou);
  const bool center = c.integer("center_point_box") != 0;

  HOLOGRAM_TRY(auto corners, c.scratch<Box>(batches * count));
  HOLOGRAM_TRY(auto chosen, c.scratch<int64_t>(batches * classes * limit));
  HOLOGRAM_TRY(auto totals, c.scratch<int64_t>(batches * classes));
  HOLOGRAM_TRY(auto order, c.scratch<int64_t>(batches * classes * count));
  for (int64_t i = 0; i < batches * count; ++i)
    corners[i] = read_box(boxes.as<float>() + 4 * i, center);
  c.threads().parallel_for(
      batches * classes, 1,
      [&](size_t begin, size_t end) {
        for (size_t job = begin; job < end; ++job) {
          const float* score = scores.as<float>() + static_cast<int64_t>(job) * count;
          const Box* box = corners.data() + static_cast<int64_t>(job) / classes * count;
          int64_t* candidates = order.data() + static_cast<int64_t>(job) * count;
          int64_t* selected = chosen.data() + static_cast<int64_t>(job) * limit;
          int64_t left = 0, kept = 0;
          for (int64_t i = 0; i < count; ++i)
            if (score[i] >= least) candidates[left++] = i;
          std::sort(candidates, candidates + left, [&](int64_t a, int64_t b) {
            return score[a] != score[b] ? score[a] > score[b] : a < b;
          });
          for (int64_t i = 0; i < left && kept < limit; ++i) {
            const Box& next = box[candidates[i]];
            if (std::none_of(selected, selected + kept,
                             [&](int64_t k) { return overlaps(box[k], next, iou); }))
              selected[kept++] = candidates[i];
          }
          totals[job] = kept;
        }
      },
      Schedule::dynamic);
  int64_t total = 0;
  for (int64_t kept : totals) total += kept;
  HOLOGRAM_TRY(Tensor y, c.output(0, {total, 3}));
  int64_t* out = y.as<int64_t>();
  for (int64_t job = 0; job < batches * classes; ++job)
    for (int64_t i = 0; i < totals[job]; ++i, out += 3) {
      out[0] = job / classes;
      out[1] = job % classes;
      out[2] = chosen[job * limit + i];
    }
  return {};
}

namespace {

// The four pixels around a sampling point, and their weights; all 0 far outside.
template <typename T>
struct Point {
  int64_t at[4];
  T weight[4];

  Point(T y, T x, int64_t height, int64_t width) : at{}, weight{} {
    if (!(y >= T(-1) && y <= static_cast<T>(height) && x >= T(-1) && x <= static_cast<T>(width)))
      return;
    auto split = [](T v, int64_t length, int64_t& low, int64_t& high) {
      v = std::max(v, T(0));
      low = static_cast<int64_t>(v);
      if (low >= length - 1) {
        low = high = length - 1;
        return T(0);
      }
      high = low + 1;
      return v - static_cast<T>(low);
    };
    int64_t top, bottom, left, right;
    const T fy = split(y, height, top, bottom), fx = split(x, width, left, right);
    at[0] = top * width + left, weight[0] = (1 - fy) * (1 - fx);
    at[1] = top * width + right, weight[1] = (1 - fy) * fx;
    at[2] = bottom * width + left, weight[2] = fy * (1 - fx);
    at[3] = bottom * width + right, weight[3] = fy * fx;
  }
};

}  // namespace

Status roi_align(KernelContext& c) {
  const Tensor &x = c.input(0), &rois = c.input(1), &images = c.input(2);
  const int64_t rows = c.integer("output_height", 1), columns = c.integer("output_width", 1);
  const int64_t ratio = c.integer("sampling_ratio", 0);
  const auto transform = c.text("coordinate_transformation_mode", "half_pixel");
  const auto mode = c.text("mode", "avg");
  if (x.dims.rank() != 4 || rois.dims.rank() != 2 || rois.dims[1] != 4 ||
      images.count() != rois.dims[0] || rows < 1 || columns < 1 || ratio < 0 || ratio > 1024)
    return fail(ErrorCode::shape_mismatch,
                "input {}, rois {}, batch_indices {}, output {} x {}, sampling_ratio {}; "
                "[N, C, H, W], [R, 4] and [R] expected",
                x.dims.to_string(), rois.dims.to_string(), images.dims.to_string(), rows, columns,
                ratio);
  if (transform != "half_pixel" && transform != "output_half_pixel")
    return fail(ErrorCode::invalid_argument,
                "coordinate_transformation_mode '{}'; supported: half_pixel, output_half_pixel",
                transform);
  if (mode != "avg" && mode != "max")
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: avg, max", mode);
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3];
  HOLOGRAM_TRY(Tensor y, c.output(0, {rois.dims[0], channels, rows, columns}));
  if (y.count() == 0) return {};
  if (height < 1 || width < 1)
    return fail(ErrorCode::shape_mismatch, "an image {} without elements", x.dims.to_string());
  const bool half = transform == "half_pixel", maximum = mode == "max";
  const double scale = c.number("spatial_scale", 1);
  return dispatch_float(x.dtype, [&]<typename T>() -> Status {
    if (!std::isfinite(static_cast<T>(scale)))
      return fail(ErrorCode::invalid_argument, "spatial_scale {}", scale);
    for (int64_t i = 0; i < rois.dims[0]; ++i) {
      const int64_t image = images.as<int64_t>()[i];
      if (image < 0 || image >= x.dims[0])
        return fail(ErrorCode::out_of_range, "region {} is in image {} of {}", i, image, x.dims[0]);
      for (int64_t k = 0; k < 4; ++k)
        if (!(std::abs(static_cast<double>(rois.as<T>()[4 * i + k]) * scale) < 1e6))
          return fail(ErrorCode::out_of_range, "coordinate {} of region {}",
                      static_cast<double>(rois.as<T>()[4 * i + k]), i);
    }
    auto align = [&](int64_t roi, int64_t row, int64_t column) {
      const T* box = rois.as<T>() + 4 * roi;
      const T shift = half ? T(0.5) : T(0), unit = static_cast<T>(scale);
      const T left = box[0] * unit - shift, top = box[1] * unit - shift;
      T wide = box[2] * unit - shift - left, tall = box[3] * unit - shift - top;
      if (!half) wide = std::max(wide, T(1)), tall = std::max(tall, T(1));
      const T bin_w = wide / static_cast<T>(columns), bin_h = tall / static_cast<T>(rows);
      const auto grid_w = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bin_w));
      const auto grid_h = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(bin_h));
      const T* image = x.as<T>() + images.as<int64_t>()[roi] * channels * height * width;
      T* out = y.as<T>() + (roi * channels * rows + row) * columns + column;
      const int64_t next = rows * columns;
      for (int64_t k = 0; k < channels; ++k) out[k * next] = T(0);
      bool first = true;
      for (int64_t iy = 0; iy < grid_h; ++iy)
        for (int64_t ix = 0; ix < grid_w; ++ix, first = false) {
          const T py = top + static_cast<T>(row) * bin_h +
                       (static_cast<T>(iy) + T(0.5)) * bin_h / static_cast<T>(grid_h);
          const T px = left + static_cast<T>(column) * bin_w +
                       (static_cast<T>(ix) + T(0.5)) * bin_w / static_cast<T>(grid_w);
          // A row of points outside the image reads zero everywhere: one point stands for all.
          if (ix > 0 && !(py >= T(-1) && py <= static_cast<T>(height))) break;
          const Point<T> p(py, px, height, width);
          for (int64_t k = 0; k < channels; ++k) {
            const T* plane = image + k * height * width;
            T terms[4];
            for (int t = 0; t < 4; ++t) terms[t] = p.weight[t] * plane[p.at[t]];
            // The standard's cases take the largest weighted pixel, not the interpolated value.
            if (maximum) {
              const T best = std::max(std::max(terms[0], terms[1]), std::max(terms[2], terms[3]));
              out[k * next] = first ? best : std::max(out[k * next], best);
            } else {
              out[k * next] += terms[0] + terms[1] + terms[2] + terms[3];
            }
          }
        }
      if (!maximum)
        for (int64_t k = 0; k < channels; ++k)
          out[k * next] /= static_cast<T>(std::max<int64_t>(1, grid_h * grid_w));
    };
    c.threads().parallel_for(
        rois.dims[0] * rows * columns, 1,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            const auto at = static_cast<int64_t>(i);
            align(at / (rows * columns), at / columns % rows, at % columns);
          }
        },
        Schedule::dynamic);
    return {};
  });
}

}  // namespace hologram::kernels
