#include "backends/cpu/kernels/dispatch.h"
#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/slice_range.h"
#include "backends/cpu/kernels/strided.h"

namespace hologram::kernels {
namespace {

// Where a source axis lies in an output axis: output index o shows source index o - before, where
// that is inside [first, last); the rest is filled.
struct Placement {
  int64_t before, first, last, size;
};

enum class Fill { constant, reflect, edge, wrap };

// The source index that output index `o` of a filled axis shows, or -1 for the constant.
int64_t source_of(const Placement& p, Fill fill, int64_t o) {
  const int64_t i = o - p.before, length = p.last - p.first;
  if (i >= p.first && i < p.last) return i;
  switch (fill) {
    case Fill::constant:
      return -1;
    case Fill::edge:
      return i < p.first ? p.first : p.last - 1;
    case Fill::wrap: {
      const int64_t k = (i - p.first) % length;
      return p.first + (k < 0 ? k + length : k);
    }
    case Fill::reflect: {
      if (length == 1) return p.first;
      // Once is what models do, and needs no division.
      if (const int64_t j = 2 * (i < p.first ? p.first : p.last - 1) - i;
          j >= p.first && j < p.last)
        return j;
      const int64_t period = 2 * (length - 1);
      int64_t k = (i - p.first) % period;
      if (k < 0) k += period;
      return p.first + (k < length ? k : period - k);
    }
  }
  return -1;
}

// Fills `out` from `in`: axis by axis by `places`.
template <typename T>
Status place(KernelContext& c, const Tensor& in, const Tensor& out,
             std::span<const Placement> places, Fill fill, const T& value) {
  const size_t rank = out.dims.rank();
  const int64_t total = out.count();
  if (total == 0) return {};
  if (rank == 0) {
    *out.as<T>() = *in.as<T>();
    return {};
  }
  // The source of every index of every axis; of the last only where it is filled.
  int64_t entries = 0;
  for (int64_t dim : out.dims) entries += dim;
  HOLOGRAM_TRY(auto map, c.scratch<int64_t>(entries));
  const int64_t* source[kMaxRank];
  const Dims strides = in.dims.strides();
  const size_t last = rank - 1;
  const Placement& row = places[last];
  const int64_t run = out.dims[last], rows = total / run;
  const int64_t begin_inside = std::clamp(row.before + row.first, int64_t{0}, run);
  const int64_t end_inside = std::clamp(row.before + row.last, begin_inside, run);
  int64_t* at = map.data();
  for (size_t axis = 0; axis < rank; at += out.dims[axis++]) {
    source[axis] = at;
    for (int64_t o = 0; o < out.dims[axis]; ++o) {
      if (axis == last && o == begin_inside) o = end_inside;
      if (o < out.dims[axis]) at[o] = source_of(places[axis], fill, o);
    }
  }
  const int64_t grain = std::max<int64_t>(1, 16 * 1024 / run);
  c.threads().parallel_for(rows, grain, [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      int64_t rest = static_cast<int64_t>(at), offset = 0;
      bool inside = true;
      for (size_t axis = last; axis-- > 0; rest /= out.dims[axis]) {
        const int64_t from = source[axis][rest % out.dims[axis]];
        inside &= from >= 0;
        offset += from * strides[axis];
      }
      T* to = out.as<T>() + static_cast<int64_t>(at) * run;
      if (!inside) {
        std::fill_n(to, run, value);
        continue;
      }
      const T* from = in.as<T>() + offset;
      const int64_t* of = source[last];
      for (int64_t i = 0; i < begin_inside; ++i) to[i] = of[i] < 0 ? value : from[of[i]];
      if (end_inside > begin_inside)
        std::copy_n(from + begin_inside - row.before, end_inside - begin_inside, to + begin_inside);
      for (int64_t i = end_inside; i < run; ++i) to[i] = of[i] < 0 ? value : from[of[i]];
    }
  });
  return {};
}

Status place_any(KernelContext& c, const Tensor& in, const Tensor& out,
                 std::span<const Placement> places, Fill fill, const Tensor* value) {
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    return place<T>(c, in, out, places, fill, value ? *value->as<T>() : T{});
  });
}

}  // namespace

Status slice(KernelContext& c) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  HOLOGRAM_TRY(const Dims starts, c.input_integers(1));
  HOLOGRAM_TRY(const Dims ends, c.input_integers(2));
  HOLOGRAM_TRY(const Dims axes, c.input_integers(3));
  HOLOGRAM_TRY(const Dims steps, c.input_integers(4));
  if (ends.rank() != starts.rank() || (c.has_input(3) && axes.rank() != starts.rank()) ||
      (c.has_input(4) && steps.rank() != starts.rank()) || starts.rank() > rank)
    return fail(ErrorCode::shape_mismatch,
                "{} starts, {} ends, {} axes, {} steps for a tensor of rank {}", starts.rank(),
                ends.rank(), axes.rank(), steps.rank(), rank);
  Dims dims = in.dims, strides = in.dims.strides();
  int64_t offset = 0;
  bool seen[kMaxRank] = {};
  for (size_t i = 0; i < starts.rank(); ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 normalise_axis(c.has_input(3) ? axes[i] : static_cast<int64_t>(i), rank));
    if (seen[axis]) return fail(ErrorCode::invalid_argument, "axis {} is named twice", axis);
    seen[axis] = true;
    HOLOGRAM_TRY(const SliceRange range,
                 slice_range(in.dims[axis], starts[i], ends[i], c.has_input(4) ? steps[i] : 1));
    offset += range.start * strides[axis];
    dims[axis] = range.count;
    // A step beyond the axis is never taken; keeping it would overflow.
    strides[axis] = range.count > 1 ? strides[axis] * range.step : 0;
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  Strided view;
  view.offset = offset;
  for (size_t i = 0; i < rank; ++i) view.push(dims[i], strides[i]);
  return dispatch_size(in.dtype, [&]<typename T>() -> Status {
    copy_strided(in.as<T>(), view, out.as<T>(), c.threads());
    return {};
  });
}

Status split(KernelContext& c) {
  const Tensor& in = c.input(0);
  HOLOGRAM_TRY(const size_t axis, c.axis("axis", 0, in.dims.rank()));
  const int64_t parts = static_cast<int64_t>(c.output_count()), size = in.dims[axis];
  const int64_t count = c.integer("num_outputs", parts);
  if (count < parts || count > std::max(parts, size))
    return fail(ErrorCode::invalid_argument, "num_outputs is {}; the node has {} outputs", count,
                parts);
  if (c.has_input(1)) {
    const Tensor& sizes = c.input(1);
    int64_t sum = 0;
    for (int64_t i = 0; i < sizes.count(); ++i) {
      if (integer_at(sizes, i) < 0)
        return fail(ErrorCode::invalid_argument, "a part of {} elements", integer_at(sizes, i));
      if (__builtin_add_overflow(sum, integer_at(sizes, i), &sum)) sum = -1;
    }
    if (sizes.count() < parts || sum != size)
      return fail(ErrorCode::shape_mismatch,
                  "{} parts of {} elements together for {} outputs of {}", sizes.count(), sum,
                  parts, size);
  }
  const int64_t even = (size + count - 1) / count;
  const int64_t outer = in.dims.product(0, axis);
  const int64_t inner = in.dims.product(axis + 1, in.dims.rank());
  int64_t at = 0;
  for (int64_t part = 0; part < parts; ++part) {
    Dims dims = in.dims;
    dims[axis] =
        c.has_input(1) ? integer_at(c.input(1), part) : std::clamp<int64_t>(size - at, 0, even);
    HOLOGRAM_TRY(Tensor out, c.output(part, dims));
    Strided view;
    view.offset = at * inner;
    view.push(outer, size * inner);
    view.push(dims[axis] * inner, 1);
    HOLOGRAM_CHECK(dispatch_size(in.dtype, [&]<typename T>() -> Status {
      copy_strided(in.as<T>(), view, out.as<T>(), c.threads());
      return {};
    }));
    at += dims[axis];
  }
  return {};
}

Status pad(KernelContext& c) {
  const Tensor &in = c.input(0), &pads = c.input(1);
  const size_t rank = in.dims.rank();
  HOLOGRAM_TRY(const Dims axes, c.input_integers(3));
  const size_t count = c.has_input(3) ? axes.rank() : rank;
  if (pads.count() != static_cast<int64_t>(2 * count))
    return fail(ErrorCode::shape_mismatch, "{} pads for {} axes", pads.count(), count);
  const std::string_view mode = c.text("mode", "constant");
  Fill fill;
  if (mode == "constant")
    fill = Fill::constant;
  else if (mode == "reflect")
    fill = Fill::reflect;
  else if (mode == "edge")
    fill = Fill::edge;
  else if (mode == "wrap")
    fill = Fill::wrap;
  else
    return fail(ErrorCode::invalid_argument, "mode '{}'; supported: constant, reflect, edge, wrap",
                mode);
  const Tensor* value = c.has_input(2) ? &c.input(2) : nullptr;
  if (value && value->count() != 1)
    return fail(ErrorCode::shape_mismatch, "constant_value of shape {}; one element expected",
                value->dims.to_string());
  Placement places[kMaxRank];
  for (size_t i = 0; i < rank; ++i) places[i] = {0, 0, in.dims[i], in.dims[i]};
  for (size_t i = 0; i < count; ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 normalise_axis(c.has_input(3) ? axes[i] : static_cast<int64_t>(i), rank));
    const int64_t begin = integer_at(pads, i), end = integer_at(pads, i + count);
    const int64_t size = in.dims[axis];
    Placement& p = places[axis];
    // Negative pads cut elements off, and what is left is then padded.
    constexpr int64_t kLimit = int64_t{1} << 48;
    if (begin < -size || end < -size || begin > kLimit || end > kLimit)
      return fail(ErrorCode::out_of_range, "pads {} and {} of an axis of {}", begin, end, size);
    p = {begin, std::max<int64_t>(0, -begin), size - std::max<int64_t>(0, -end),
         size + begin + end};
    if (p.size < 0)
      return fail(ErrorCode::shape_mismatch, "pads {} and {} of an axis of {}", begin, end, size);
    if (fill != Fill::constant && p.size > 0 && p.last <= p.first)
      return fail(ErrorCode::shape_mismatch, "mode {} has nothing to repeat in axis {}", mode,
                  axis);
    // More is cut off at one end than there is: the other end's pads remain.
    p.last = std::max(p.first, p.last);
  }
  Dims dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(places[i].size);
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  return place_any(c, in, out, {places, rank}, fill, value);
}

Status center_crop_pad(KernelContext& c) {
  const Tensor& in = c.input(0);
  const size_t rank = in.dims.rank();
  HOLOGRAM_TRY(const Dims shape, c.input_integers(1));
  const auto axes = c.integers("axes");
  const size_t count = axes.empty() ? rank : axes.size();
  if (shape.rank() != count)
    return fail(ErrorCode::shape_mismatch, "a shape of {} dimensions for {} axes", shape.rank(),
                count);
  Placement places[kMaxRank];
  Dims dims = in.dims;
  for (size_t i = 0; i < rank; ++i) places[i] = {0, 0, in.dims[i], in.dims[i]};
  for (size_t i = 0; i < count; ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 normalise_axis(axes.empty() ? static_cast<int64_t>(i) : axes[i], rank));
    const int64_t size = in.dims[axis], target = shape[i];
    if (target < 0) return fail(ErrorCode::invalid_argument, "a size of {}", target);
    dims[axis] = target;
    // Cropping starts at the half rounded down; padding begins with the half rounded down.
    const int64_t before = target >= size ? (target - size) / 2 : -((size - target) / 2);
    places[axis] = {before, 0, size, target};
  }
  HOLOGRAM_TRY(Tensor out, c.output(0, dims));
  return place_any(c, in, out, {places, rank}, Fill::constant, nullptr);
}

}  // namespace hologram::kernels
