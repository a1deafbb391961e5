// Parts of a tensor, and a tensor as part of a larger one.
#include <algorithm>
#include <limits>

#include "backends/cpu/kernels/slice_range.h"
#include "graph/infer.h"
#include "graph/ops/movement.h"

namespace hologram::graph::ops {
namespace {

// Models write "to the end" as any large number.
constexpr int64_t kEnd = std::numeric_limits<int32_t>::max();

// How many elements start:end:step takes from an axis of symbolic size.
Dim slice_count(const Dim& size, int64_t start, int64_t end, int64_t step) {
  if (step == -1 && end <= -kEnd && (start == -1 || start >= kEnd)) return size;
  if (step < 0) return unknown_dim();
  if (end <= -kEnd) return 0;
  Dim count = 0;
  if (start >= 0 && end >= kEnd) {
    count = start == 0 ? size : larger(size - start, 0);
  } else if (start >= 0 && end < 0) {
    count = larger(size - (Dim(start) - Dim(end)), 0);
  } else if (start >= 0) {
    if (end <= start) return 0;
    count = start == 0 ? smaller(size, end) : larger(smaller(size, end) - start, 0);
  } else if (end >= kEnd) {
    count = start <= -kEnd ? size : smaller(size, -start);
  } else {
    return unknown_dim();
  }
  return ceil_div(count, step);
}

// How much of a dimension lies from `start` to a symbolic end, where that is no difference: only
// such a one may be negative and count from the end.
Dim count_up_to(const Dim& dim, int64_t start, const Dim& end) {
  if (is_unknown(dim) || is_unknown(end) || start < 0 ||
      end.symbol().find('-') != std::string::npos)
    return unknown_dim();
  return larger(smaller(end, dim) - start, 0);
}

Status slice(InferContext& c) {
  const Shape* in = c.shape(0);
  const auto starts = c.numbers(1), ends = c.numbers(2);
  const auto axes = c.numbers(3), steps = c.numbers(4);
  if (!in) return {};
  std::vector<Dim> dims = in->dims();
  const bool known = starts && ends && (axes || !c.has(3)) && (steps || !c.has(4));
  if (!known) {
    // Only the axes that are named change.
    if (c.has(3) && axes) {
      const std::vector<Dim>* bounds = c.contents(2);
      const bool counted =
          bounds && starts && bounds->size() == axes->size() && starts->size() == axes->size() &&
          (!c.has(4) ||
           (steps && std::ranges::all_of(*steps, [](int64_t step) { return step == 1; })));
      for (size_t i = 0; i < axes->size(); ++i) {
        HOLOGRAM_TRY(const size_t axis, c.axis((*axes)[i], dims.size()));
        dims[axis] = !counted ? unknown_dim()
                     : (*bounds)[i].is_symbol()
                         ? count_up_to(dims[axis], (*starts)[i], (*bounds)[i])
                         : unknown_dim();
      }
    } else {
      for (Dim& dim : dims) dim = unknown_dim();
    }
    c.set_shape(0, Shape(std::move(dims)));
    return {};
  }
  if (ends->size() != starts->size() || (axes && axes->size() != starts->size()) ||
      (steps && steps->size() != starts->size()) || starts->size() > dims.size())
    return fail(ErrorCode::shape_mismatch, "{} starts, {} ends, {} axes, {} steps for {}",
                starts->size(), ends->size(), axes ? axes->size() : 0, steps ? steps->size() : 0,
                in->to_string());
  for (size_t i = 0; i < starts->size(); ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 c.axis(axes ? (*axes)[i] : static_cast<int64_t>(i), dims.size()));
    const int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) return fail(ErrorCode::invalid_argument, "a slice with step 0");
    if (dims[axis].is_symbol()) {
      dims[axis] = slice_count(dims[axis], (*starts)[i], (*ends)[i], step);
      continue;
    }
    HOLOGRAM_TRY(const auto range,
                 kernels::slice_range(dims[axis].value(), (*starts)[i], (*ends)[i], step));
    dims[axis] = range.count;
    const auto* contents = c.contents(0);
    if (contents && in->rank() == 1) {
      std::vector<Dim> part;
      for (int64_t k = 0; k < range.count; ++k)
        part.push_back((*contents)[range.start + k * range.step]);
      c.set_contents(0, std::move(part));
    }
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status split(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis"), in->rank()));
  const int64_t outputs = static_cast<int64_t>(c.output_count());
  const int64_t count = c.integer("num_outputs", outputs);
  if (count < outputs)
    return fail(ErrorCode::invalid_argument, "num_outputs is {}; the node has {} outputs", count,
                outputs);
  const auto sizes = c.numbers(1);
  if (sizes && static_cast<int64_t>(sizes->size()) < outputs)
    return fail(ErrorCode::shape_mismatch, "{} sizes for {} outputs", sizes->size(), outputs);
  const Dim size = (*in)[axis];
  const auto* contents = in->rank() == 1 ? c.contents(0) : nullptr;
  int64_t at = 0;
  for (int64_t i = 0; i < outputs; ++i) {
    std::vector<Dim> dims = in->dims();
    if (sizes) {
      dims[axis] = (*sizes)[i];
    } else if (c.has(1) || size.is_symbol()) {
      dims[axis] = count == 1 && !c.has(1) ? size : unknown_dim();
    } else {
      const int64_t part = std::clamp<int64_t>(size.value() - at, 0,
                                               size.value() / count + (size.value() % count != 0));
      dims[axis] = part;
    }
    if (!dims[axis].is_symbol() && dims[axis].value() < 0)
      return fail(ErrorCode::invalid_argument, "a part of {} elements", dims[axis].value());
    if (!dims[axis].is_symbol()) {
      const int64_t begin = at;
      if (__builtin_add_overflow(at, dims[axis].value(), &at))
        return fail(ErrorCode::invalid_argument, "parts of more elements than there can be");
      if (contents && at <= static_cast<int64_t>(contents->size()))
        c.set_contents(i, {contents->begin() + begin, contents->begin() + at});
    }
    c.set_shape(i, Shape(std::move(dims)));
  }
  return {};
}

Status pad(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  const auto pads = c.numbers(1), axes = c.numbers(3);
  if (!pads || (c.has(3) && !axes)) {
    c.set_shape(0, Shape(std::vector<Dim>(in->rank(), unknown_dim())));
    return {};
  }
  const size_t count = axes ? axes->size() : in->rank();
  if (pads->size() != 2 * count)
    return fail(ErrorCode::shape_mismatch, "{} pads for {} axes", pads->size(), count);
  std::vector<Dim> dims = in->dims();
  for (size_t i = 0; i < count; ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 c.axis(axes ? (*axes)[i] : static_cast<int64_t>(i), dims.size()));
    dims[axis] = (*in)[axis] + (Dim((*pads)[i]) + Dim((*pads)[i + count]));
    if (!dims[axis].is_symbol() && dims[axis].value() < 0)
      return fail(ErrorCode::shape_mismatch, "pads {} and {} of axis {} of {}", (*pads)[i],
                  (*pads)[i + count], axis, in->to_string());
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status center_crop_pad(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  const auto axes = c.integers("axes");
  std::vector<Dim> dims = in->dims();
  const size_t count = axes.empty() ? dims.size() : axes.size();
  const auto* shape = c.contents(1);
  if (shape && shape->size() != count)
    return fail(ErrorCode::shape_mismatch, "a shape of {} dimensions for {} axes", shape->size(),
                count);
  for (size_t i = 0; i < count; ++i) {
    HOLOGRAM_TRY(const size_t axis,
                 c.axis(axes.empty() ? static_cast<int64_t>(i) : axes[i], dims.size()));
    dims[axis] = shape ? (*shape)[i] : unknown_dim();
    if (!dims[axis].is_symbol() && dims[axis].value() < 0)
      return fail(ErrorCode::invalid_argument, "dimension {}", dims[axis].value());
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

// Before opset 11 the value was a number, whatever the type of the data.
Result<std::vector<ValueId>> pad_with_number(ComposeContext& c) {
  const double value = c.attributes().number("value");
  return std::vector<ValueId>{
      c.op("Pad")
          .input(c.in(0))
          .input(c.in(1))
          .input(c.number(c.type(0).dtype, value))
          .attribute("mode", std::string(c.attributes().text("mode", "constant")).c_str())};
}

}  // namespace

void add_regions(OperatorTable& table) {
  table.add("Slice")
      .signature("data:T, starts:I, ends:I, axes:I?, steps:I? -> output:T")
      .where("T", kAll)
      .where("I", kIndices)
      .infer(slice)
      .kernel();
  table.add("Split")
      .signature("input:T, split:i64? -> outputs:T...")
      .where("T", kAll)
      .attributes("axis:i, num_outputs:i")
      .infer(split)
      .kernel();
  table.add("Pad")
      .signature("data:T, pads:i64, constant_value:T?, axes:I? -> output:T")
      .where("T", kAll)
      .where("I", kIndices)
      .attributes("mode:s")
      .infer(pad)
      .kernel();
  table.add("PadWithNumber", "hologram")
      .signature("data:T, pads:i64 -> output:T")
      .where("T", kFloats)
      .attributes("mode:s, value:f")
      .infer(pad)
      .compose(pad_with_number);
  table.add("CenterCropPad")
      .signature("input_data:T, shape:I -> output_data:T")
      .where("T", kAll)
      .where("I", kIndices)
      .attributes("axes:is")
      .infer(center_crop_pad)
      .kernel();
}

}  // namespace hologram::graph::ops
