// com.microsoft: activations and products with something fused into them.
#include "graph/ops/microsoft.h"

#include <algorithm>
#include <numeric>

#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

Result<Values> gelu(ComposeContext& c) {
  const Writer w(c);
  const bool fast = c.node.op == "FastGelu";
  const ValueId x = c.has(1) ? w.add(c.in(0), c.in(1)) : c.in(0);
  return Values{c.op("Gelu").input(x).attribute("approximate", fast ? "tanh" : "none").output()};
}

Result<Values> quick_gelu(ComposeContext& c) {
  const double alpha = c.attributes().number("alpha", 1.702);
  return Values{c.op("Swish").input(c.in(0)).attribute("alpha", alpha).output()};
}

// An operand as MatMul takes it. `batch`: its first axis is the rows' (or columns'), and the batch
// axes follow.
Result<ValueId> operand(ComposeContext& c, size_t index, bool transposed, bool batch) {
  if (!transposed && !batch) return c.in(index);
  const auto shape = c.type(index).shape;
  if (!shape)
    return fail(ErrorCode::unsupported, "a transposed operand of unknown rank; supported: known");
  const auto rank = static_cast<int64_t>(shape->rank());
  if (rank < 2) return c.in(index);  // vectors stay as they are
  std::vector<int64_t> order(shape->rank());
  std::iota(order.begin(), order.end(), 0);
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed) std::swap(order[rank - 2], order[rank - 1]);
  return Writer(c).transpose(c.in(index), std::move(order));
}

Result<Values> fused_matmul(ComposeContext& c) {
  const Writer w(c);
  const Attributes& a = c.attributes();
  const DType type = c.type(0).dtype;
  HOLOGRAM_TRY(const ValueId left, operand(c, 0, a.integer("transA"), a.integer("transBatchA")));
  HOLOGRAM_TRY(const ValueId right, operand(c, 1, a.integer("transB"), a.integer("transBatchB")));
  const ValueId product = w.call("MatMul", {left, right});
  const double alpha = a.number("alpha", 1);
  return Values{alpha == 1 ? product : w.mul(product, w.number(type, alpha))};
}

// The activation that a fused node names. Its numbers are those the node gives, in order; what is
// not given has the operator's own default.
Result<ValueId> activate(ComposeContext& c, ValueId x, std::string_view name,
                         std::span<const float> numbers) {
  const Writer w(c);
  static constexpr std::pair<std::string_view, std::array<const char*, 2>> kKnown[] = {
      {"Relu", {}},
      {"Tanh", {}},
      {"Sigmoid", {}},
      {"Softplus", {}},
      {"Softsign", {}},
      {"HardSwish", {}},
      {"LeakyRelu", {"alpha"}},
      {"Elu", {"alpha"}},
      {"ThresholdedRelu", {"alpha"}},
      {"HardSigmoid", {"alpha", "beta"}},
      {"Selu", {"alpha", "gamma"}},
  };
  if (name.empty()) return x;
  if (name == "Clip" && numbers.size() == 2) {
    const DType type = c.graph.value(x).type.dtype;
    return w.call("Clip", {x, w.number(type, numbers[0]), w.number(type, numbers[1])});
  }
  for (const auto& [known, names] : kKnown) {
    if (known != name) continue;
    NodeBuilder node = c.op(std::string(name));
    node.input(x);
    for (size_t i = 0; i < names.size() && i < numbers.size(); ++i)
      if (names[i]) node.attribute(names[i], static_cast<double>(numbers[i]));
    return node.output();
  }
  return fail(ErrorCode::unsupported,
              "activation '{}' with {} numbers; supported: Relu, Tanh, Sigmoid, Softplus, "
              "Softsign, HardSwish, LeakyRelu, Elu, ThresholdedRelu, HardSigmoid, Selu, Clip of 2",
              name, numbers.size());
}

Result<Values> fused_conv(ComposeContext& c) {
  const Writer w(c);
  Attributes rest = c.attributes();
  rest.erase("activation");
  rest.erase("activation_params");
  NodeBuilder conv = c.op("Conv");
  conv.input(c.in(0)).input(c.in(1)).attributes(rest);
  if (c.has(2)) conv.input(c.in(2));
  ValueId y = conv;
  if (c.has(3)) y = w.add(y, c.in(3));
  HOLOGRAM_TRY(y, activate(c, y, c.attributes().text("activation"),
                           c.attributes().numbers("activation_params")));
  return Values{y};
}

Result<Values> fused_gemm(ComposeContext& c) {
  Attributes rest = c.attributes();
  std::vector<float> numbers;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (rest.has(name)) numbers.push_back(static_cast<float>(rest.number(name)));
    rest.erase(name);
  }
  rest.erase("activation");
  NodeBuilder gemm = c.op("Gemm");
  gemm.inputs(c.node.inputs).attributes(rest);
  HOLOGRAM_TRY(const ValueId y,
               activate(c, gemm.output(), c.attributes().text("activation"), numbers));
  return Values{y};
}

// Softmax over all axes from `axis` on, of data + bias. A bias of the data's rank broadcasts as
// always; of a lower one it meets the last axes, which is the outer broadcast.
Result<Values> bias_softmax(ComposeContext& c) {
  const auto data = c.type(0).shape, bias = c.type(1).shape;
  if (c.attributes().integer("is_inner_broadcast") != 0 &&
      (!data || !bias || data->rank() != bias->rank()))
    return fail(ErrorCode::unsupported,
                "is_inner_broadcast with a bias of another rank; supported: the data's rank");
  return Values{c.op("SoftmaxCoerced", "hologram")
                    .input(Writer(c).add(c.in(0), c.in(1)))
                    .attribute("axis", c.attributes().integer("axis", 1))
                    .output()};
}

}  // namespace

void add_microsoft(OperatorTable& table) {
  auto add = [&](const char* name, const char* signature, TypeSet types, const char* attributes,
                 ComposeFunction f) {
    table.add(name, kMicrosoft)
        .signature(signature)
        .where("T", types)
        .attributes(attributes)
        .infer(no_shape)
        .compose(f);
  };
  add("Gelu", "X:T -> Y:T", kFloats, "", gelu);
  add("BiasGelu", "A:T, B:T -> C:T", kFloats, "", gelu);
  add("FastGelu", "X:T, bias:T? -> Y:T", kFloats, "", gelu);
  add("QuickGelu", "X:T -> Y:T", kFloats, "alpha:f", quick_gelu);
  add("FusedMatMul", "A:T, B:T -> Y:T", kFloats,
      "alpha:f, transA:i, transB:i, transBatchA:i, transBatchB:i", fused_matmul);
  add("TransposeMatMul", "A:T, B:T -> Y:T", kFloats, "alpha:f, transA:i, transB:i", fused_matmul);
  add("FusedConv", "X:T, W:T, B:T?, Z:T? -> Y:T", kFloats,
      "activation:s, activation_params:fs, auto_pad:s, dilations:is, group:i, kernel_shape:is, "
      "pads:is, strides:is",
      fused_conv);
  add("FusedGemm", "A:T, B:T, C:T? -> Y:T",
      kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64},
      "activation:s, activation_alpha:f, activation_beta:f, activation_gamma:f, alpha:f, beta:f, "
      "transA:i, transB:i",
      fused_gemm);
  add("BiasSoftmax", "data:T, bias:T -> output:T", kFloats, "axis:i, is_inner_broadcast:i",
      bias_softmax);
  add_microsoft_attention(table);
  add_microsoft_normalisation(table);
  add_microsoft_quantised(table);
  add_microsoft_bits(table);
}

}  // namespace hologram::graph::ops
