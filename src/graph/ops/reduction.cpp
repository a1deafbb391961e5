// Reductions over axes, and ArgMax/ArgMin.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status reduced_shape(InferContext& c) {
  const Shape* in = c.shape(0);
  if (!in) return {};
  std::vector<bool> reduced(in->rank(), false);
  const auto axes = c.has(1) ? c.numbers(1) : std::vector<int64_t>{};
  if (!axes) return {};
  if (axes->empty() && c.integer("noop_with_empty_axes") == 0) reduced.assign(in->rank(), true);
  for (const int64_t axis : *axes) {
    HOLOGRAM_TRY(const size_t place, c.axis(axis, in->rank()));
    reduced[place] = true;
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < in->rank(); ++i) {
    if (!reduced[i])
      dims.push_back((*in)[i]);
    else if (c.integer("keepdims", 1) != 0)
      dims.emplace_back(1);
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status arg_shape(InferContext& c) {
  c.set_dtype(0, DType::i64);
  const Shape* in = c.shape(0);
  if (!in) return {};
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis"), in->rank()));
  std::vector<Dim> dims;
  for (size_t i = 0; i < in->rank(); ++i) {
    if (i != axis)
      dims.push_back((*in)[i]);
    else if (c.integer("keepdims", 1) != 0)
      dims.emplace_back(1);
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

// Of integers: in f64, cut off.
Result<Values> log_sum_exp(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  std::vector<ValueId> inputs = c.node.inputs;
  if (is_integer(type)) inputs[0] = w.cast(inputs[0], DType::f64);
  const ValueId reduced =
      c.op("ReduceLogSumExpOfFloats", "hologram").inputs(inputs).attributes(c.attributes());
  return Values{w.cast(reduced, type)};
}

}  // namespace

void add_reduction(OperatorTable& table) {
  const TypeSet wide = kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64};
  for (const char* name : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceMax", "ReduceMean",
                           "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    const bool ordered =
        std::string_view(name) == "ReduceMax" || std::string_view(name) == "ReduceMin";
    table.add(name)
        .signature("data:T, axes:i64? -> reduced:T")
        .where("T", ordered ? wide | TypeSet{DType::i8, DType::u8, DType::boolean} : wide)
        .attributes("keepdims:i, noop_with_empty_axes:i")
        .infer(reduced_shape)
        .kernel();
  }
  for (const char* domain : {"", "hologram"}) {
    const bool floats = std::string_view(domain) == "hologram";
    auto entry = table.add(floats ? "ReduceLogSumExpOfFloats" : "ReduceLogSumExp", domain);
    entry.signature("data:T, axes:i64? -> reduced:T")
        .where("T", floats ? kFloats : wide)
        .attributes("keepdims:i, noop_with_empty_axes:i")
        .infer(reduced_shape);
    if (floats)
      entry.kernel("ReduceLogSumExp");
    else
      entry.compose(log_sum_exp);
  }
  for (const char* name : {"ArgMax", "ArgMin"})
    table.add(name)
        .signature("data:T -> reduced:i64")
        .where("T", kNumbers)
        .attributes("axis:i, keepdims:i, select_last_index:i")
        .infer(arg_shape)
        .kernel();
}

}  // namespace hologram::graph::ops
