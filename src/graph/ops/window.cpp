#include "graph/ops/window.h"

#include "backends/cpu/kernels/window.h"

namespace hologram::graph::ops {
namespace {

bool is_same(std::string_view auto_pad) {
  return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
}

// Attributes of a window, checked; entry(i) of an absent list is its default.
struct Lists {
  std::string_view auto_pad;
  std::span<const int64_t> strides, dilations, pads;
  size_t rank;

  static Result<Lists> of(const InferContext& c, const Shape& x, std::span<const Dim> kernel) {
    Lists lists{c.text("auto_pad", "NOTSET"), c.integers("strides"), c.integers("dilations"),
                c.integers("pads"), x.rank() < 2 ? 0 : x.rank() - 2};
    if (kernel.size() != lists.rank)
      return fail(ErrorCode::shape_mismatch, "a kernel of {} axes for an input {}", kernel.size(),
                  x.to_string());
    std::vector<int64_t> sizes;
    for (const Dim& d : kernel) sizes.push_back(d.is_symbol() ? 1 : d.value());
    HOLOGRAM_CHECK(kernels::check_window(lists.auto_pad, sizes, lists.strides, lists.dilations,
                                         lists.pads, lists.rank));
    return lists;
  }
  Dim stride(size_t i) const { return strides.empty() ? 1 : strides[i]; }
  Dim reach(size_t i, const Dim& size) const {
    return (size - 1) * Dim(dilations.empty() ? 1 : dilations[i]) + 1;
  }
  int64_t begin(size_t i) const { return auto_pad == "VALID" || pads.empty() ? 0 : pads[i]; }
  int64_t both(size_t i) const {
    return auto_pad == "VALID" || pads.empty() ? 0 : pads[i] + pads[i + rank];
  }
};

Status check_size(const Dim& size, size_t axis) {
  if (!size.is_symbol() && size.value() < 0)
    return fail(ErrorCode::shape_mismatch, "spatial axis {} of the result would have {} elements",
                axis, size.value());
  return {};
}

}  // namespace

Result<Shape> windowed_shape(const InferContext& c, const Shape& x, Dim channels,
                             std::span<const Dim> kernel, bool ceil_mode) {
  HOLOGRAM_TRY(const Lists lists, Lists::of(c, x, kernel));
  std::vector<Dim> dims = {x[0], std::move(channels)};
  for (size_t i = 0; i < lists.rank; ++i) {
    const Dim &in = x[i + 2], stride = lists.stride(i);
    if (is_same(lists.auto_pad)) {
      dims.push_back(ceil_div(in, stride));
      continue;
    }
    const Dim room = in + Dim(lists.both(i)) - lists.reach(i, kernel[i]);
    HOLOGRAM_CHECK(check_size(room, i));
    // With ceil_mode, no window starts in the padding at the end; VALID rounds down in both modes.
    dims.push_back(
        ceil_mode && lists.auto_pad != "VALID"
            ? smaller(ceil_div(room, stride) + 1, ceil_div(in + Dim(lists.begin(i)), stride))
            : room / stride + 1);
  }
  return Shape(std::move(dims));
}

Result<Shape> transposed_shape(const InferContext& c, const Shape& x, Dim channels,
                               std::span<const Dim> kernel) {
  HOLOGRAM_TRY(const Lists lists, Lists::of(c, x, kernel));
  auto shape = c.integers("output_shape"), extra = c.integers("output_padding");
  if (shape.size() == lists.rank + 2) shape = shape.subspan(2);
  if ((!shape.empty() && shape.size() != lists.rank) ||
      (!extra.empty() && extra.size() != lists.rank))
    return fail(ErrorCode::shape_mismatch,
                "output_shape or output_padding do not fit {} spatial axes", lists.rank);
  std::vector<Dim> dims = {x[0], std::move(channels)};
  for (size_t i = 0; i < lists.rank; ++i) {
    const Dim &in = x[i + 2], stride = lists.stride(i);
    const Dim size = !shape.empty() ? Dim(shape[i])
                     : is_same(lists.auto_pad)
                         ? in * stride
                         : stride * (in - 1) + Dim(extra.empty() ? 0 : extra[i]) +
                               lists.reach(i, kernel[i]) - Dim(lists.both(i));
    HOLOGRAM_CHECK(check_size(size, i));
    dims.push_back(size);
  }
  return Shape(std::move(dims));
}

Result<std::vector<Dim>> kernel_of(const InferContext& c, const Shape* w, size_t rank) {
  std::vector<Dim> kernel;
  for (int64_t size : c.integers("kernel_shape")) kernel.push_back(size);
  if (!w || w->rank() < 2) return kernel;
  if (kernel.empty()) {
    kernel.assign(w->begin() + 2, w->end());
  } else {
    for (size_t i = 0; i < kernel.size(); ++i)
      if (w->rank() != rank || kernel.size() + 2 != rank ||
          (!(*w)[i + 2].is_symbol() && (*w)[i + 2] != kernel[i]))
        return fail(ErrorCode::shape_mismatch, "kernel_shape does not agree with weights {}",
                    w->to_string());
  }
  return kernel;
}

}  // namespace hologram::graph::ops
