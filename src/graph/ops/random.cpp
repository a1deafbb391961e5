// Random tensors and Dropout.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kFloat8 = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};

DType named_type(InferContext& c, DType fallback) {
  if (!c.attributes().has("dtype")) return fallback;
  return dtype_from_code(static_cast<uint8_t>(c.integer("dtype"))).value_or(fallback);
}

Status like_types(InferContext& c) {
  c.set_dtype(0, named_type(c, c.dtype(0)));
  if (const Shape* shape = c.shape(0)) c.set_shape(0, *shape);
  return {};
}

Status of_shape_types(InferContext& c) {
  c.set_dtype(0, named_type(c, DType::f32));
  c.set_shape(0, Shape(c.integers("shape")));
  return {};
}

Status multinomial_types(InferContext& c) {
  c.set_dtype(0, named_type(c, DType::i32));
  if (const Shape* shape = c.shape(0); shape && shape->rank() == 2)
    c.set_shape(0, Shape(std::vector<Dim>{(*shape)[0], Dim(c.integer("sample_size", 1))}));
  return {};
}

Status dropout_types(InferContext& c) {
  if (c.wants(1)) c.set_dtype(1, DType::boolean);
  return same_shape_as_first(c);
}

// Before opset 10 the mask had the data's type; nothing is dropped.
Result<Values> dropout_with_numbers(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  const ValueId kept = w.call("Expand", {w.number(type, 1), w.call("Shape", {c.in(0)})});
  return Values{w.call("Identity", {c.in(0)}), kept};
}

}  // namespace

void add_random(OperatorTable& table) {
  table.add("Bernoulli")
      .signature("input:T1 -> output:T2")
      .where("T1", kFloats)
      .where("T2", kCompute)
      .attributes("dtype:i, seed:f")
      .infer(like_types)
      .kernel()
      .random();
  table.add("Multinomial")
      .signature("input:T1 -> output:T2")
      .where("T1", kFloats)
      .where("T2", kIndices)
      .attributes("dtype:i, sample_size:i, seed:f")
      .infer(multinomial_types)
      .kernel()
      .random();
  table.add("RandomNormal")
      .signature("-> output:T")
      .where("T", kFloats)
      .attributes("dtype:i, mean:f, scale:f, seed:f, shape:I")
      .infer(of_shape_types)
      .kernel()
      .random();
  table.add("RandomNormalLike")
      .signature("input:T1 -> output:T2")
      .where("T1", kAll)
      .where("T2", kFloats)
      .attributes("dtype:i, mean:f, scale:f, seed:f")
      .infer(like_types)
      .kernel()
      .random();
  table.add("RandomUniform")
      .signature("-> output:T")
      .where("T", kFloats)
      .attributes("dtype:i, high:f, low:f, seed:f, shape:I")
      .infer(of_shape_types)
      .kernel()
      .random();
  table.add("RandomUniformLike")
      .signature("input:T1 -> output:T2")
      .where("T1", kAll)
      .where("T2", kFloats)
      .attributes("dtype:i, high:f, low:f, seed:f")
      .infer(like_types)
      .kernel()
      .random();
  table.add("Dropout")
      .signature("data:T, ratio:T1?, training_mode:bool? -> output:T, mask:bool?")
      .where("T", kFloats | kFloat8)
      .where("T1", kFloats | kFloat8)
      .attributes("seed:i")
      .infer(dropout_types)
      .kernel()
      .random();
  table.add("DropoutWithNumbers", "hologram")
      .signature("data:T -> output:T, mask:T?")
      .where("T", kFloats)
      .infer(same_shape_as_first)
      .compose(dropout_with_numbers);
}

}  // namespace hologram::graph::ops
