// Losses.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status loss_shapes(InferContext& c) {
  if (c.text("reduction", "mean") != "none")
    c.set_shape(0, Shape());
  else if (const Shape* labels = c.shape(1))
    c.set_shape(0, *labels);
  if (const Shape* scores = c.shape(0)) c.set_shape(1, *scores);
  return {};
}

}  // namespace

void add_loss(OperatorTable& table) {
  table.add("NegativeLogLikelihoodLoss")
      .signature("input:T, target:Tind, weight:T? -> loss:T")
      .where("T", kFloats)
      .where("Tind", kIndices)
      .attributes("ignore_index:i, reduction:s")
      .infer(loss_shapes)
      .kernel();
  table.add("SoftmaxCrossEntropyLoss")
      .signature("scores:T, labels:Tind, weights:T? -> output:T, log_prob:T?")
      .where("T", kFloats)
      .where("Tind", kIndices)
      .attributes("ignore_index:i, reduction:s")
      .infer(loss_shapes)
      .kernel();
}

}  // namespace hologram::graph::ops
