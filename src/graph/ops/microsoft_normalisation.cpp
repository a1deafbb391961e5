// com.microsoft: normalisations of sums and of embeddings.
#include <numeric>

#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/microsoft.h"

namespace hologram::graph::ops {
namespace {

// Y, the mean (nothing for RMS) and 1 / deviation of x, the last two as f32.
struct Normalised {
  ValueId y, mean, inverse;
};

Normalised layer_norm(ComposeContext& c, ValueId x, ValueId gamma, ValueId beta, int64_t axis,
                      double epsilon) {
  NodeBuilder node = c.op("LayerNormalization");
  node.input(x).input(gamma).attribute("epsilon", epsilon).attribute("axis", axis).outputs(3);
  if (beta != kNoValue) node.input(beta);
  return {node.output(0), node.output(1), node.output(2)};
}

Result<Normalised> rms_norm(ComposeContext& c, ValueId x, ValueId gamma, int64_t axis,
                            double epsilon, bool wants_inverse) {
  const Writer w(c);
  Normalised n{};
  n.y = c.op("RMSNormalization")
            .input(x)
            .input(gamma)
            .attribute("epsilon", epsilon)
            .attribute("axis", axis);
  n.mean = n.inverse = n.y;  // never read unless asked for
  if (!wants_inverse) return n;
  const auto shape = c.graph.value(x).type.shape;
  if (!shape)
    return fail(ErrorCode::unsupported,
                "inv_std_var of an input of unknown rank; supported: known");
  HOLOGRAM_TRY(const size_t first, kernels::normalise_axis(axis, shape->rank()));
  std::vector<int64_t> axes(shape->rank() - first);
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(first));
  const ValueId wide = w.cast(x, DType::f32);
  const ValueId squares = w.call("ReduceMean", {w.mul(wide, wide), w.list(axes)});
  const ValueId root = w.call("Sqrt", {w.add(squares, w.number(DType::f32, epsilon))});
  n.inverse = w.call("Reciprocal", {root});
  return n;
}

double epsilon_of(const ComposeContext& c, double fallback) {
  return c.attributes().number("epsilon", fallback);
}

// input, skip, gamma, then beta (layer) and bias: output, mean, inv_std_var, the sum.
Result<Values> skip_layer_norm(ComposeContext& c) {
  const Writer w(c);
  const bool simplified = c.node.op == "SkipSimplifiedLayerNormalization";
  const size_t bias = simplified ? 3 : 4;
  ValueId sum = w.add(c.in(0), c.in(1));
  if (c.has(bias)) sum = w.add(sum, c.in(bias));
  if (!simplified) {
    const Normalised n =
        layer_norm(c, sum, c.in(2), c.has(3) ? c.in(3) : kNoValue, -1, epsilon_of(c, 1e-12));
    return Values{n.y, n.mean, n.inverse, sum};
  }
  HOLOGRAM_TRY(const Normalised n,
               rms_norm(c, sum, c.in(2), -1, epsilon_of(c, 1e-12), c.node.outputs.size() > 2));
  return Values{n.y, n.mean, n.inverse, sum};
}

Result<Values> simplified_layer_norm(ComposeContext& c) {
  HOLOGRAM_TRY(const Normalised n, rms_norm(c, c.in(0), c.in(1), c.attributes().integer("axis", -1),
                                            epsilon_of(c, 1e-5), c.node.outputs.size() > 1));
  return Values{n.y, n.inverse};
}

// input_ids, segment_ids, word, position and segment embeddings, gamma, beta, mask, position_ids.
Result<Values> embed_layer_norm(ComposeContext& c) {
  const Writer w(c);
  ValueId sum = w.gather(c.in(2), c.in(0));
  const ValueId positions = c.has(8) ? c.in(8) : w.range(w.scalar_dim(c.in(0), 1));
  sum = w.add(sum, w.gather(c.in(3), positions));
  if (c.has(1) != c.has(4))
    return fail(ErrorCode::invalid_argument, "segment_ids and segment_embedding come together");
  if (c.has(1)) sum = w.add(sum, w.gather(c.in(4), c.in(1)));
  const Normalised n = layer_norm(c, sum, c.in(5), c.in(6), -1, epsilon_of(c, 1e-12));
  // How many words are not masked; 0 without a mask.
  ValueId lengths;
  if (c.has(7)) {
    const ValueId ones = w.cast(w.call("Equal", {c.in(7), w.number(DType::i32, 1)}), DType::i32);
    lengths = c.op("ReduceSum").input(ones).input(w.list({1})).attribute("keepdims", 0);
  } else {
    lengths = w.call("Expand", {w.number(DType::i32, 0), w.dim(c.in(0), 0)});
  }
  return Values{n.y, lengths, sum};
}

}  // namespace

void add_microsoft_normalisation(OperatorTable& table) {
  constexpr TypeSet kActivations = {DType::f16, DType::bf16, DType::f32};
  table.add("SkipLayerNormalization", kMicrosoft)
      .signature(
          "input:T, skip:T, gamma:T, beta:T?, bias:T? -> output:T, mean:f32?, inv_std_var:f32?, "
          "input_skip_bias_sum:T?")
      .where("T", kActivations)
      .attributes("epsilon:f")
      .infer(no_shape)
      .compose(skip_layer_norm);
  table.add("SkipSimplifiedLayerNormalization", kMicrosoft)
      .signature(
          "input:T, skip:T, gamma:T, bias:T? -> output:T, mean:f32?, inv_std_var:f32?, "
          "input_skip_bias_sum:T?")
      .where("T", kActivations)
      .attributes("epsilon:f")
      .infer(no_shape)
      .compose(skip_layer_norm);
  // ONNX Runtime's own, though its domain is ai.onnx.
  for (const char* domain : {"", kMicrosoft})
    table.add("SimplifiedLayerNormalization", domain)
        .signature("X:T, scale:V2 -> Y:V2, inv_std_var:f32?")
        .where("T", kFloats)
        .where("V2", kFloats)
        .attributes("axis:i, epsilon:f, stash_type:i")
        .infer(no_shape)
        .compose(simplified_layer_norm);
  table.add("EmbedLayerNormalization", kMicrosoft)
      .signature(
          "input_ids:i32, segment_ids:i32?, word_embedding:T, position_embedding:T, "
          "segment_embedding:T?, gamma:T, beta:T, mask:i32?, position_ids:i32? -> output:T, "
          "mask_index:i32?, embedding_sum:T?")
      .where("T", kActivations)
      .attributes("epsilon:f, mask_index_type:i")
      .infer(no_shape)
      .compose(embed_layer_norm);
}

}  // namespace hologram::graph::ops
