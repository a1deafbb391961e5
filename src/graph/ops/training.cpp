// Optimiser steps of ai.onnx.preview.training.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kWide = {DType::f32, DType::f64};

// Outputs are the new X's, then the new statistics, all shaped like the X's: every output has the
// type of the input it replaces. Inputs after R and T come in `groups`, outputs in one group less.
Status optimiser_types(InferContext& c, size_t groups) {
  if (c.input_count() < 2 + groups || (c.input_count() - 2) % groups != 0)
    return fail(ErrorCode::invalid_argument,
                "{} tensors after R and T; {} belong to each optimised one", c.input_count() - 2,
                groups);
  const size_t tensors = (c.input_count() - 2) / groups;
  if (c.output_count() != tensors * (groups - 1))
    return fail(ErrorCode::invalid_argument, "{} outputs; {} optimised tensors have {}",
                c.output_count(), tensors, tensors * (groups - 1));
  for (size_t i = 0; i < c.output_count(); ++i)
    if (c.wants(i)) c.set_type(i, c.type(2 + i % tensors));
  return {};
}

// The sum of a gradient over the axes along which an operand was repeated.
Result<Values> unbroadcast(ComposeContext& c) {
  const auto given = c.type(0).shape, like = c.type(1).shape;
  if (!given || !like || given->rank() < like->rank())
    return fail(ErrorCode::unsupported, "a gradient {} for a value {}; known ranks expected",
                given ? given->to_string() : "of unknown shape",
                like ? like->to_string() : "of unknown shape");
  std::vector<int64_t> axes;
  const size_t extra = given->rank() - like->rank();
  for (size_t i = 0; i < given->rank(); ++i) {
    const bool repeated = i < extra || ((*like)[i - extra] == Dim(1) && (*given)[i] != Dim(1));
    if (repeated)
      axes.push_back(static_cast<int64_t>(i));
    else if ((*given)[i] != (*like)[i - extra])
      return fail(ErrorCode::unsupported, "a gradient {} for a value {}", given->to_string(),
                  like->to_string());
  }
  if (axes.empty()) return Values{c.in(0)};
  const Writer w(c);
  const ValueId sum = w.call("ReduceSum", {c.in(0), w.list(axes)});
  return Values{w.call("Reshape", {sum, w.call("Shape", {c.in(1)})})};
}

}  // namespace

void add_training(OperatorTable& table) {
  table.add("Unbroadcast", "hologram")
      .signature("gradient:T, like:T -> output:T")
      .where("T", kNumbers)
      .infer(no_shape)
      .compose(unbroadcast);
  const std::string domain = "ai.onnx.preview.training";
  table.add("Adagrad", domain)
      .signature("R:T1, T:i64, inputs:T3... -> outputs:T3...")
      .where("T1", kWide)
      .where("T3", kWide)
      .attributes("decay_factor:f, epsilon:f, norm_coefficient:f")
      .infer([](InferContext& c) { return optimiser_types(c, 3); })
      .kernel();
  table.add("Adam", domain)
      .signature("R:T1, T:i64, inputs:T3... -> outputs:T3...")
      .where("T1", kWide)
      .where("T3", kWide)
      .attributes("alpha:f, beta:f, epsilon:f, norm_coefficient:f, norm_coefficient_post:f")
      .infer([](InferContext& c) { return optimiser_types(c, 4); })
      .kernel();
  table.add("Momentum", domain)
      .signature("R:T1, T:i64, inputs:T3... -> outputs:T3...")
      .where("T1", kWide)
      .where("T3", kWide)
      .attributes("alpha:f, beta:f, mode:s, norm_coefficient:f")
      .infer([](InferContext& c) { return optimiser_types(c, 3); })
      .kernel();
}

}  // namespace hologram::graph::ops
