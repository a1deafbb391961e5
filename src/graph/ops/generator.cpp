// Tensors made from a few numbers. Constant is no operator here: a reader of models makes it a
// constant value.
#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/ops/rank.h"

namespace hologram::graph::ops {
namespace {

Status constant_of_shape(InferContext& c) {
  const Tensor* value = c.attributes().tensor("value");
  if (value && value->count() != 1)
    return fail(ErrorCode::shape_mismatch, "value of shape {}; one element expected",
                value->dims.to_string());
  c.set_dtype(0, value ? value->dtype : DType::f32);
  if (const auto* shape = c.contents(0)) {
    for (const Dim& dim : *shape)
      if (!dim.is_symbol() && dim.value() < 0)
        return fail(ErrorCode::invalid_argument, "dimension {} in the shape", dim.value());
    c.set_shape(0, Shape(*shape));
  } else if (const Shape* s = c.shape(0); s && s->rank() == 1 && !(*s)[0].is_symbol()) {
    return set_rank(c, (*s)[0].value());
  }
  return {};
}

// Whether some value has that many elements along an axis: it is not negative then.
bool is_size(const Graph& graph, const Dim& dim) {
  for (size_t i = 0; i < graph.value_count(); ++i)
    if (const auto& shape = graph.value(static_cast<ValueId>(i)).type.shape)
      for (const Dim& size : *shape)
        if (equal_dims(size, dim)) return true;
  return false;
}

Status range(InferContext& c) {
  for (size_t i = 0; i < 3; ++i) {
    const Shape* shape = c.shape(i);
    if (shape && shape->rank() > 1)
      return fail(ErrorCode::shape_mismatch, "input {} is {}; a scalar expected", i,
                  shape->to_string());
  }
  Dim count = unknown_dim();
  const auto *start = c.contents(0), *limit = c.contents(1), *delta = c.contents(2);
  // Contents are integers; a negative delta is left to the kernel.
  if (start && limit && delta && start->size() == 1 && limit->size() == 1 && delta->size() == 1 &&
      !(*delta)[0].is_symbol() && (*delta)[0].value() > 0) {
    const Dim length = (*limit)[0] - (*start)[0];
    count = ceil_div(is_size(c.graph(), length) ? length : larger(length, 0), (*delta)[0]);
  }
  c.set_shape(0, Shape(std::vector<Dim>{count}));
  return {};
}

Status eye_like(InferContext& c) {
  DType type = c.dtype(0);
  if (c.attributes().has("dtype")) {
    auto named = dtype_from_code(static_cast<uint8_t>(c.integer("dtype")));
    if (!named) return fail(ErrorCode::invalid_argument, "attribute 'dtype' names no element type");
    type = *named;
  }
  if (!kCompute.has(type))
    return fail(ErrorCode::unsupported, "a result of type {}; supported: {}", name_of(type),
                kCompute.to_string());
  c.set_dtype(0, type);
  if (const Shape* shape = c.shape(0)) {
    if (shape->rank() != 2)
      return fail(ErrorCode::shape_mismatch, "input {}; a matrix expected", shape->to_string());
    c.set_shape(0, *shape);
  }
  return {};
}

}  // namespace

void add_generator(OperatorTable& table) {
  table.add("ConstantOfShape")
      .signature("input:i64 -> output:T2")
      .attributes("value:t")
      .infer(constant_of_shape)
      .kernel();
  table.add("Range")
      .signature("start:T, limit:T, delta:T -> output:T")
      .where("T", kFloats | TypeSet{DType::i16, DType::i32, DType::i64})
      .infer(range)
      .kernel();
  table.add("EyeLike")
      .signature("input:T1 -> output:T2")
      .where("T1", kCompute)
      .attributes("dtype:i, k:i")
      .infer(eye_like)
      .kernel();
}

}  // namespace hologram::graph::ops
