// Running sums and products, the largest elements, and the distinct ones.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status top_k_shapes(InferContext& c) {
  c.set_dtype(1, DType::i64);
  const Shape* x = c.shape(0);
  const auto* k = c.contents(1);
  if (!x || !k || k->size() != 1) return {};
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis", -1), x->rank()));
  Shape shape = *x;
  shape[axis] = (*k)[0];
  c.set_shape(0, shape);
  c.set_shape(1, shape);
  return {};
}

Status unique_types(InferContext& c) {
  for (size_t i = 1; i <= 3; ++i)
    if (c.wants(i)) c.set_dtype(i, DType::i64);
  return {};
}

}  // namespace

void add_sorting(OperatorTable& table) {
  for (const char* name : {"CumSum", "CumProd"})
    table.add(name)
        .signature("x:T, axis:T2 -> y:T")
        .where("T", kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64})
        .where("T2", kIndices)
        .attributes("exclusive:i, reverse:i")
        .infer(same_shape_as_first)
        .kernel();
  table.add("TopK")
      .signature("X:T, K:i64 -> Values:T, Indices:i64")
      .where("T", kNumbers)
      .attributes("axis:i, largest:i, sorted:i")
      .infer(top_k_shapes)
      .kernel();
  table.add("Unique")
      .signature("X:T -> Y:T, indices:i64?, inverse_indices:i64?, counts:i64?")
      .where("T", kCompute | kStrings | kComplex)
      .attributes("axis:i, sorted:i")
      .infer(unique_types)
      .kernel();
}

}  // namespace hologram::graph::ops
