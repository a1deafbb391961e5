// Recurrent layers.
#include "graph/infer.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Status recurrent(InferContext& c) {
  for (size_t i = 0; i < c.output_count(); ++i)
    if (c.wants(i)) c.set_dtype(i, c.dtype(0));
  const Shape *x = c.shape(0), *r = c.shape(2);
  if (!x || !r) return {};
  if (x->rank() != 3 || r->rank() != 3)
    return fail(ErrorCode::shape_mismatch, "X {} and R {}; rank 3 expected", x->to_string(),
                r->to_string());
  const bool batch_first = c.integer("layout") != 0;
  const Dim directions(c.text("direction", "forward") == "bidirectional" ? 2 : 1);
  const Dim steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1];
  const Dim hidden = (*r)[2];
  using Dims = std::vector<Dim>;
  c.set_shape(0, Shape(batch_first ? Dims{batch, steps, directions, hidden}
                                   : Dims{steps, directions, batch, hidden}));
  for (size_t i : {size_t{1}, size_t{2}})
    c.set_shape(
        i, Shape(batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden}));
  return {};
}

}  // namespace

void add_recurrent(OperatorTable& table) {
  const std::string common =
      "activation_alpha:F, activation_beta:F, activations:S, clip:f, direction:s, hidden_size:i, "
      "layout:i";
  table.add("RNN")
      .signature("X:T, W:T, R:T, B:T?, sequence_lens:i32?, initial_h:T? -> Y:T?, Y_h:T?")
      .where("T", kFloats)
      .attributes(common)
      .infer(recurrent)
      .kernel();
  table.add("GRU")
      .signature("X:T, W:T, R:T, B:T?, sequence_lens:i32?, initial_h:T? -> Y:T?, Y_h:T?")
      .where("T", kFloats)
      .attributes(common + ", linear_before_reset:i")
      .infer(recurrent)
      .kernel();
  table.add("LSTM")
      .signature(
          "X:T, W:T, R:T, B:T?, sequence_lens:i32?, initial_h:T?, initial_c:T?, P:T? -> Y:T?, "
          "Y_h:T?, Y_c:T?")
      .where("T", kFloats)
      .attributes(common + ", input_forget:i")
      .infer(recurrent)
      .kernel();
}

}  // namespace hologram::graph::ops
