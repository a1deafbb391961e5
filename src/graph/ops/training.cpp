// Optimiser steps of ai.onnx.preview.training.
#include "graph/infer.h"
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
  for (size_t i = 0; i < c.output_count(); ++i)
    if (c.wants(i)) c.set_type(i, c.type(2 + i % tensors));
  return {};
}

}  // namespace

void add_training(OperatorTable& table) {
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
