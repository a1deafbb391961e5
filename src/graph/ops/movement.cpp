// Operators that change where elements are, not what they are.
#include "graph/ops/movement.h"

#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/ops/rank.h"

namespace hologram::graph::ops {
namespace {

Status identity(InferContext& c) {
  c.set_type(0, c.type(0));
  if (const auto* contents = c.contents(0)) c.set_contents(0, *contents);
  return {};
}

Status shape(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) {
    c.set_shape(0, Shape(std::vector<Dim>{unknown_dim()}));
    return {};
  }
  const int64_t rank = static_cast<int64_t>(in->rank());
  auto bound = [&](int64_t v) { return std::clamp(v < 0 ? v + rank : v, int64_t{0}, rank); };
  const int64_t start = bound(c.integer("start", 0));
  const int64_t end = std::max(start, bound(c.integer("end", rank)));
  std::vector<Dim> dims(in->begin() + start, in->begin() + end);
  c.set_shape(0, {static_cast<int64_t>(dims.size())});
  c.set_contents(0, std::move(dims));
  return {};
}

Status size(InferContext& c) {
  c.set_shape(0, {});
  if (const Shape* in = c.shape(0)) c.set_contents(0, {product(in->dims())});
  return {};
}

Status reshape(InferContext& c) {
  const auto* target = c.contents(1);
  if (!target) {
    // The length of the shape is the rank of the result.
    if (const Shape* s = c.shape(1); s && s->rank() == 1 && !(*s)[0].is_symbol())
      return set_rank(c, (*s)[0].value());
    return {};
  }
  const Shape* in = c.shape(0);
  const bool allow_zero = c.integer("allowzero") != 0;
  std::vector<Dim> dims = *target;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_symbol()) continue;
    if (dims[i].value() == 0 && !allow_zero) {
      if (in && i >= in->rank())
        return fail(ErrorCode::shape_mismatch,
                    "dimension {} of the new shape copies one that {} does not have", i,
                    in->to_string());
      dims[i] = in ? (*in)[i] : unknown_dim();
    } else if (dims[i].value() == -1) {
      if (open) return fail(ErrorCode::shape_mismatch, "more than one dimension of -1");
      open = i;
    } else if (dims[i].value() < 0) {
      return fail(ErrorCode::shape_mismatch, "dimension {} in the new shape", dims[i].value());
    }
  }
  if (open) {
    dims[*open] = 1;
    dims[*open] = in ? product(in->dims()) / product(dims) : unknown_dim();
  }
  if (in && in->is_static() && Shape(dims).is_static()) {
    const Dim before = product(in->dims()), after = product(dims);
    if (before != after)
      return fail(ErrorCode::shape_mismatch, "{} elements of {} do not fill {}", before.value(),
                  in->to_string(), Shape(dims).to_string());
  }
  c.set_shape(0, Shape(std::move(dims)));
  if (const auto* contents = c.contents(0); contents && target->size() <= 1)
    c.set_contents(0, *contents);
  return {};
}

Status flatten(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  const int64_t rank = static_cast<int64_t>(in->rank());
  int64_t axis = c.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return fail(ErrorCode::out_of_range, "axis {} of rank {}", axis, rank);
  if (axis < 0) axis += rank;
  const auto& dims = in->dims();
  c.set_shape(0, Shape(std::vector<Dim>{product(std::span(dims).first(axis)),
                                        product(std::span(dims).subspan(axis))}));
  return {};
}

Status squeeze(InferContext& c) {
  const Shape* in = c.shape(0);
  auto axes = c.numbers(1);
  if (!in || (c.has(1) && !axes)) return {};
  std::vector<bool> drop(in->rank(), false);
  if (!c.has(1)) {
    for (size_t i = 0; i < in->rank(); ++i) {
      if ((*in)[i].is_symbol()) return {};
      drop[i] = (*in)[i].value() == 1;
    }
  } else {
    for (int64_t value : *axes) {
      HOLOGRAM_TRY(const size_t axis, c.axis(value, in->rank()));
      if (!(*in)[axis].is_symbol() && (*in)[axis].value() != 1)
        return fail(ErrorCode::shape_mismatch, "axis {} of {} is not 1", axis, in->to_string());
      drop[axis] = true;
    }
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < in->rank(); ++i)
    if (!drop[i]) dims.push_back((*in)[i]);
  c.set_shape(0, Shape(std::move(dims)));
  if (const auto* contents = c.contents(0)) c.set_contents(0, *contents);
  return {};
}

Status unsqueeze(InferContext& c) {
  const Shape* in = c.shape(0);
  auto axes = c.numbers(1);
  if (!in || !axes) return {};
  const size_t rank = in->rank() + axes->size();
  std::vector<bool> fresh(rank, false);
  for (int64_t value : *axes) {
    HOLOGRAM_TRY(const size_t axis, c.axis(value, rank));
    if (fresh[axis]) return fail(ErrorCode::invalid_argument, "axis {} is named twice", axis);
    fresh[axis] = true;
  }
  std::vector<Dim> dims;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) dims.push_back(fresh[i] ? Dim(1) : (*in)[next++]);
  c.set_shape(0, Shape(std::move(dims)));
  if (const auto* contents = c.contents(0); contents && rank <= 1) c.set_contents(0, *contents);
  return {};
}

Status transpose(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  auto perm = c.integers("perm");
  if (!perm.empty() && perm.size() != in->rank())
    return fail(ErrorCode::shape_mismatch, "perm has {} axes for a tensor of rank {}", perm.size(),
                in->rank());
  std::vector<Dim> dims;
  for (size_t i = 0; i < in->rank(); ++i) {
    HOLOGRAM_TRY(
        const size_t axis,
        c.axis(perm.empty() ? static_cast<int64_t>(in->rank() - 1 - i) : perm[i], in->rank()));
    dims.push_back((*in)[axis]);
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status concat(InferContext& c) {
  bool contents = true;
  std::vector<Dim> joined;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.shape(i)) return {};
    const auto* part = c.contents(i);
    contents &= part && c.shape(i)->rank() == 1;
    if (contents) joined.insert(joined.end(), part->begin(), part->end());
  }
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis"), c.shape(0)->rank()));
  std::vector<Dim> dims = c.shape(0)->dims();
  for (size_t i = 1; i < c.input_count(); ++i) {
    const Shape& in = *c.shape(i);
    if (in.rank() != dims.size())
      return fail(ErrorCode::shape_mismatch, "inputs of rank {} and {}", dims.size(), in.rank());
    for (size_t k = 0; k < dims.size(); ++k) {
      if (k == axis) {
        dims[k] = dims[k] + in[k];
      } else if (dims[k].is_symbol() && !in[k].is_symbol()) {
        dims[k] = in[k];
      } else if (!dims[k].is_symbol() && !in[k].is_symbol() && dims[k] != in[k]) {
        return fail(ErrorCode::shape_mismatch, "inputs {} and {} differ in axis {}",
                    c.shape(0)->to_string(), in.to_string(), k);
      }
    }
  }
  c.set_shape(0, Shape(std::move(dims)));
  if (contents) c.set_contents(0, std::move(joined));
  return {};
}

}  // namespace

void add_movement(OperatorTable& table) {
  table.add("Identity").signature("input:V -> output:V").infer(identity).kernel();
  table.add("Shape")
      .signature("data:T -> shape:i64")
      .where("T", kAll)
      .attributes("start:i, end:i")
      .infer(shape)
      .kernel();
  table.add("Size").signature("data:T -> size:i64").where("T", kAll).infer(size).kernel();
  table.add("Reshape")
      .signature("data:T, shape:i64 -> reshaped:T")
      .where("T", kAll)
      .attributes("allowzero:i")
      .infer(reshape)
      .kernel();
  table.add("Flatten")
      .signature("input:T -> output:T")
      .where("T", kAll)
      .attributes("axis:i")
      .infer(flatten)
      .kernel();
  table.add("Squeeze")
      .signature("data:T, axes:i64? -> squeezed:T")
      .where("T", kAll)
      .infer(squeeze)
      .kernel();
  table.add("Unsqueeze")
      .signature("data:T, axes:i64 -> expanded:T")
      .where("T", kAll)
      .infer(unsqueeze)
      .kernel();
  table.add("Transpose")
      .signature("data:T -> transposed:T")
      .where("T", kAll)
      .attributes("perm:is")
      .infer(transpose)
      .kernel();
  table.add("Concat")
      .signature("inputs:T... -> concat_result:T")
      .where("T", kAll)
      .attributes("axis:i")
      .infer(concat)
      .kernel();
  add_regions(table);
  add_repeats(table);
}

}  // namespace hologram::graph::ops
