// Normalisations.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status layer_norm_shapes(InferContext& c) {
  // Mean and InvStdDev are kept in the stash type, f32 unless said.
  const DType stash = dtype_from_code(static_cast<uint8_t>(c.integer(
                                          "stash_type", static_cast<int64_t>(DType::f32))))
                          .value_or(DType::f32);
  if (!is_float(stash))
    return fail(ErrorCode::unsupported, "stash_type {}; supported: f32, f64, f16, bf16",
                name_of(stash));
  for (size_t i : {size_t{1}, size_t{2}})
    if (c.wants(i)) c.set_dtype(i, stash);
  const Shape* x = c.shape(0);
  if (!x) return {};
  c.set_shape(0, *x);
  HOLOGRAM_TRY(const size_t axis, c.axis(c.integer("axis", -1), x->rank()));
  Shape reduced = *x;
  for (size_t i = axis; i < x->rank(); ++i) reduced[i] = Dim(1);
  c.set_shape(1, reduced);
  c.set_shape(2, reduced);
  return {};
}

Status batch_norm_shapes(InferContext& c) {
  if (const Shape* x = c.shape(0)) c.set_shape(0, *x);
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!c.wants(i)) continue;
    c.set_dtype(i, c.dtype(3));
    if (const Shape* mean = c.shape(3)) c.set_shape(i, *mean);
  }
  return {};
}

// The standard's own definition, with the variance taken about the mean.
Result<std::vector<ValueId>> mean_variance(ComposeContext& c) {
  const auto given = c.attributes().integers("axes");
  const ValueId axes =
      c.graph.constant(c.attributes().has("axes") ? std::vector<int64_t>(given.begin(), given.end())
                                                  : std::vector<int64_t>{0, 2, 3});
  const ValueId mean = c.op("ReduceMean").input(c.in(0)).input(axes);
  const ValueId centred = c.op("Sub").input(c.in(0)).input(mean);
  const ValueId squares = c.op("Mul").input(centred).input(centred);
  const ValueId variance = c.op("ReduceMean").input(squares).input(axes);
  const ValueId deviation = c.op("Sqrt").input(variance);
  const ValueId safe = c.op("Add").input(deviation).input(c.number(c.type(0).dtype, 1e-9));
  return std::vector<ValueId>{c.op("Div").input(centred).input(safe).output()};
}

// Before opset 9, spatial=0: statistics for each element of a sample.
Result<Values> batch_norm_of_elements(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  const double epsilon = c.attributes().number("epsilon", 1e-5);
  const ValueId deviation = w.call("Sqrt", {w.add(c.in(4), w.number(type, epsilon))});
  const ValueId scaled = w.mul(w.call("Div", {w.sub(c.in(0), c.in(3)), deviation}), c.in(1));
  return Values{w.add(scaled, c.in(2))};
}

// Before opset 21 there was one scale and bias for a group, not for a channel.
Result<Values> group_norm_by_group(ComposeContext& c) {
  const Writer w(c);
  const int64_t groups = c.attributes().integer("num_groups");
  const ValueId size = w.call("Div", {w.dim(c.in(0), 1), w.list({groups})});
  auto for_channels = [&](ValueId of_groups) {
    const ValueId shape = w.concat({w.list({groups}), size}, 0);
    return w.reshape(w.call("Expand", {w.unsqueeze(of_groups, {1}), shape}), {-1});
  };
  return Values{c.op("GroupNormalization")
                    .input(c.in(0))
                    .input(for_channels(c.in(1)))
                    .input(for_channels(c.in(2)))
                    .attributes(c.attributes())
                    .output()};
}

}  // namespace

void add_normalisation(OperatorTable& table) {
  table.add("BatchNormalization")
      .signature(
          "X:T, scale:T1, B:T1, input_mean:T2, input_var:T2 -> Y:T, running_mean:T2?, "
          "running_var:T2?")
      .where("T", kFloats)
      .where("T1", kFloats)
      .where("T2", kFloats)
      .attributes("epsilon:f, momentum:f, training_mode:i")
      .infer(batch_norm_shapes)
      .kernel();
  table.add("LayerNormalization")
      .signature("X:T, Scale:T, B:T? -> Y:T, Mean:U?, InvStdDev:U?")
      .where("T", kFloats)
      .where("U", kFloats)
      .attributes("axis:i, epsilon:f, stash_type:i, sum_order:i")
      .infer(layer_norm_shapes)
      .kernel();
  table.add("RMSNormalization")
      .signature("X:T, scale:V2 -> Y:V2")
      .where("T", kFloats)
      .where("V2", kFloats)
      .attributes("axis:i, epsilon:f, stash_type:i")
      .infer(same_shape_as_first)
      .kernel();
  table.add("InstanceNormalization")
      .signature("input:T, scale:T, B:T -> output:T")
      .where("T", kFloats)
      .attributes("epsilon:f, sum_order:i")
      .infer(same_shape_as_first)
      .kernel();
  table.add("GroupNormalization")
      .signature("X:T, scale:T, bias:T -> Y:T")
      .where("T", kFloats)
      .attributes("epsilon:f, num_groups:i, stash_type:i")
      .infer(same_shape_as_first)
      .kernel();
  table.add("GroupNormalizationByGroup", "hologram")
      .signature("X:T, scale:T, bias:T -> Y:T")
      .where("T", kFloats)
      .attributes("epsilon:f, num_groups:i")
      .infer(same_shape_as_first)
      .compose(group_norm_by_group);
  table.add("BatchNormalizationOfElements", "hologram")
      .signature("X:T, scale:T, B:T, mean:T, var:T -> Y:T")
      .where("T", kFloats)
      .attributes("epsilon:f, momentum:f")
      .infer(same_shape_as_first)
      .compose(batch_norm_of_elements);
  table.add("LpNormalization")
      .signature("input:T -> output:T")
      .where("T", kFloats)
      .attributes("axis:i, p:i")
      .infer(same_shape_as_first)
      .kernel();
  table.add("LRN")
      .signature("X:T -> Y:T")
      .where("T", kFloats)
      .attributes("alpha:f, beta:f, bias:f, size:i")
      .infer(same_shape_as_first)
      .kernel();
  table.add("MeanVarianceNormalization")
      .signature("X:T -> Y:T")
      .where("T", kFloats)
      .attributes("axes:I")
      .infer(same_shape_as_first)
      .compose(mean_variance);
}

}  // namespace hologram::graph::ops
