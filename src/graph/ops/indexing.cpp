// Elements named by indices, conditions and diagonals.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status gather(InferContext& c) {
  const Shape *in = c.shape(0), *indices = c.shape(1);
  if (!in) return {};
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis"), in->rank()));
  if (!indices) return {};
  std::vector<Dim> dims(in->begin(), in->begin() + axis);
  dims.insert(dims.end(), indices->begin(), indices->end());
  dims.insert(dims.end(), in->begin() + axis + 1, in->end());
  c.set_shape(0, Shape(std::move(dims)));
  // A part of a shape is still a shape.
  const auto* contents = c.contents(0);
  const auto chosen = c.numbers(1);
  if (!contents || !chosen || in->rank() != 1 || indices->rank() > 1) return {};
  std::vector<Dim> part;
  for (int64_t index : *chosen) {
    const int64_t size = static_cast<int64_t>(contents->size());
    if (index < -size || index >= size)
      return fail(ErrorCode::out_of_range, "index {} of an axis of {}", index, size);
    part.push_back((*contents)[index < 0 ? index + size : index]);
  }
  c.set_contents(0, std::move(part));
  return {};
}

Status gather_elements(InferContext& c) {
  const Shape *in = c.shape(0), *indices = c.shape(1);
  if (in) HOLOGRAM_CHECK(c.axis(c.integer("axis"), in->rank()));
  if (!indices) return {};
  if (in && in->rank() != indices->rank())
    return fail(ErrorCode::shape_mismatch, "data {} and indices {} of another rank",
                in->to_string(), indices->to_string());
  c.set_shape(0, *indices);
  return {};
}

Status gather_nd(InferContext& c) {
  const Shape *in = c.shape(0), *indices = c.shape(1);
  if (!in || !indices) return {};
  const int64_t batch = c.integer("batch_dims");
  if (batch < 0 || static_cast<size_t>(batch) >= std::min(in->rank(), indices->rank()))
    return fail(ErrorCode::out_of_range, "batch_dims {} of data {} and indices {}", batch,
                in->to_string(), indices->to_string());
  const Dim width = (*indices)[indices->rank() - 1];
  if (width.is_symbol()) return {};
  if (batch + width.value() > static_cast<int64_t>(in->rank()))
    return fail(ErrorCode::shape_mismatch, "indices of {} coordinates into {}", width.value(),
                in->to_string());
  std::vector<Dim> dims(indices->begin(), indices->end() - 1);
  dims.insert(dims.end(), in->begin() + batch + width.value(), in->end());
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status check_reduction(InferContext& c) {
  const std::string_view name = c.text("reduction", "none");
  for (std::string_view known : {"none", "add", "mul", "min", "max"})
    if (name == known) {
      if (name != "none" && !(kCompute | kComplex).has(c.dtype(0)))
        return fail(ErrorCode::unsupported, "reduction {} of type {}; supported: {}", name,
                    name_of(c.dtype(0)), (kCompute | kComplex).to_string());
      return same_shape_as_first(c);
    }
  return fail(ErrorCode::invalid_argument, "reduction '{}'; supported: none, add, mul, min, max",
              name);
}

Status compress(InferContext& c) {
  if (!c.attributes().has("axis")) {
    c.set_shape(0, Shape(std::vector<Dim>{unknown_dim()}));
    return {};
  }
  const Shape* in = c.shape(0);
  if (!in) return {};
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis"), in->rank()));
  std::vector<Dim> dims = in->dims();
  dims[axis] = unknown_dim();
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status non_zero(InferContext& c) {
  const Shape* in = c.shape(0);
  const Dim rank = in ? Dim(std::max<int64_t>(1, static_cast<int64_t>(in->rank()))) : unknown_dim();
  c.set_shape(0, Shape(std::vector<Dim>{rank, unknown_dim()}));
  return {};
}

Status one_hot(InferContext& c) {
  const Shape* indices = c.shape(0);
  if (!indices) return {};
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis", -1), indices->rank() + 1));
  std::vector<Dim> dims = indices->dims();
  const auto* depth = c.contents(1);
  dims.insert(dims.begin() + axis, depth && depth->size() == 1 ? (*depth)[0] : unknown_dim());
  if (!dims[axis].is_symbol() && dims[axis].value() < 0)
    return fail(ErrorCode::invalid_argument, "depth {}", dims[axis].value());
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status trilu(InferContext& c) {
  const Shape* in = c.shape(0);
  if (in && in->rank() < 2)
    return fail(ErrorCode::shape_mismatch, "input {}; a matrix or more expected", in->to_string());
  return same_shape_as_first(c);
}

// Before opset 11 a negative index was outside, not counted from the end.
Result<Values> one_hot_from_zero(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  const ValueId depth = w.cast(w.reshape(c.in(1), {}), type);
  const ValueId below = w.call("Less", {c.in(0), w.number(type, 0)});
  return Values{c.op("OneHot")
                    .input(w.call("Where", {below, depth, c.in(0)}))
                    .input(c.in(1))
                    .input(c.in(2))
                    .attributes(c.attributes())
                    .output()};
}

}  // namespace

void add_indexing(OperatorTable& table) {
  auto add = [&](const char* name, const char* signature, const char* attributes, InferFunction f) {
    return table.add(name)
        .signature(signature)
        .where("T", kAll)
        .where("I", kIndices)
        .attributes(attributes)
        .infer(f)
        .kernel();
  };
  add("Gather", "data:T, indices:I -> output:T", "axis:i", gather);
  add("GatherElements", "data:T, indices:I -> output:T", "axis:i", gather_elements);
  add("GatherND", "data:T, indices:i64 -> output:T", "batch_dims:i", gather_nd);
  add("ScatterElements", "data:T, indices:I, updates:T -> output:T", "axis:i, reduction:s",
      check_reduction);
  add("ScatterND", "data:T, indices:i64, updates:T -> output:T", "reduction:s", check_reduction);
  add("TensorScatter", "past_cache:T, update:T, write_indices:i64? -> present_cache:T",
      "axis:i, mode:s", same_shape_as_first);
  add("Compress", "input:T, condition:bool -> output:T", "axis:i", compress);
  add("NonZero", "X:T -> Y:i64", "", non_zero);
  add("Trilu", "input:T, k:i64? -> output:T", "upper:i", trilu);
  table.add("OneHot")
      .signature("indices:T1, depth:T2, values:T -> output:T")
      .where("T", kAll)
      .where("T1", kNumbers)
      .where("T2", kNumbers)
      .attributes("axis:i")
      .infer(one_hot)
      .kernel();
  table.add("OneHotFromZero", "hologram")
      .signature("indices:T1, depth:T2, values:T -> output:T")
      .where("T", kAll)
      .where("T1", kNumbers)
      .where("T2", kNumbers)
      .attributes("axis:i")
      .infer(one_hot)
      .compose(one_hot_from_zero);
}

}  // namespace hologram::graph::ops
