// com.microsoft: operators on 8-bit tensors. Each is what it says between a DequantizeLinear of
// its operands and a QuantizeLinear of its result.
#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/linear_algebra.h"
#include "graph/ops/microsoft.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kBytes = {DType::i8, DType::u8};

// Input `index` as f32; its scale and perhaps its zero point follow it.
ValueId dequantised(ComposeContext& c, size_t index) {
  NodeBuilder node = c.op("DequantizeLinear");
  node.input(c.in(index)).input(c.in(index + 1));
  if (c.has(index + 2)) node.input(c.in(index + 2));
  return node;
}

// `value` by the scale at input `scale` and perhaps the zero point after it.
ValueId quantised(ComposeContext& c, ValueId value, size_t scale, DType type) {
  const ValueId zero = c.has(scale + 1) ? c.in(scale + 1) : Writer(c).number(type, 0);
  return c.op("QuantizeLinear").input(value).input(c.in(scale)).input(zero);
}

// The order of axes that brings channels to where others have them, and back.
struct Channels {
  std::vector<int64_t> to_second, to_last;
};
Result<Channels> channels_of(const ComposeContext& c, size_t index) {
  const auto& shape = c.type(index).shape;
  if (!shape || shape->rank() < 2)
    return fail(ErrorCode::unsupported, "channels_last and an unknown rank; supported: known");
  const auto rank = static_cast<int64_t>(shape->rank());
  Channels order{{0, rank - 1}, {0}};
  for (int64_t i = 1; i + 1 < rank; ++i) order.to_second.push_back(i);
  for (int64_t i = 2; i < rank; ++i) order.to_last.push_back(i);
  order.to_last.push_back(1);
  return order;
}

Result<Values> binary(ComposeContext& c) {
  const DType type = c.type(0).dtype;
  const char* op = c.node.op == "QLinearAdd" ? "Add" : "Mul";
  const ValueId sum = Writer(c).call(op, {dequantised(c, 0), dequantised(c, 3)});
  return Values{quantised(c, sum, 6, type)};
}

Result<Values> unary(ComposeContext& c) {
  const DType type = c.type(0).dtype;
  const std::string op = c.node.op.substr(std::string("QLinear").size());
  const ValueId y = c.op(op).input(dequantised(c, 0)).attributes(c.attributes());
  return Values{quantised(c, y, 3, type)};
}

Result<Values> softmax(ComposeContext& c) {
  const DType type = c.type(0).dtype;
  const bool coerced = c.attributes().integer("opset", 13) < 13;
  NodeBuilder node = coerced ? c.op("SoftmaxCoerced", "hologram") : c.op("Softmax");
  node.input(dequantised(c, 0));
  node.attribute("axis", c.attributes().integer("axis", coerced ? 1 : -1));
  return Values{quantised(c, node.output(), 3, type)};
}

Result<Values> reduce_mean(ComposeContext& c) {
  const DType type = c.type(0).dtype;
  const auto axes = c.attributes().integers("axes");
  NodeBuilder node = c.op("ReduceMean");
  node.input(dequantised(c, 0)).attribute("keepdims", c.attributes().integer("keepdims", 1));
  if (!axes.empty()) node.input(Writer(c).list({axes.begin(), axes.end()}));
  return Values{quantised(c, node.output(), 3, type)};
}

Result<Values> pool(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  const bool last = c.attributes().integer("channels_last") != 0;
  Attributes rest = c.attributes();
  rest.erase("channels_last");
  Channels order;
  if (last) {
    HOLOGRAM_TRY(order, channels_of(c, 0));
  }
  ValueId x = dequantised(c, 0);
  if (last) x = w.transpose(x, order.to_second);
  x = c.op(c.node.op.substr(std::string("QLinear").size())).input(x).attributes(rest);
  if (last) x = w.transpose(x, order.to_last);
  return Values{quantised(c, x, 3, type)};
}

Result<Values> where(ComposeContext& c) {
  const DType type = c.type(1).dtype;
  const ValueId chosen = Writer(c).call("Where", {c.in(0), dequantised(c, 1), dequantised(c, 4)});
  return Values{quantised(c, chosen, 7, type)};
}

// Y_scale, Y_zero_point, then (tensor, scale, zero point) any number of times.
Result<Values> concat(ComposeContext& c) {
  const DType type = c.type(1).dtype;
  if (c.node.inputs.size() < 5 || (c.node.inputs.size() - 2) % 3 != 0)
    return fail(ErrorCode::invalid_argument,
                "{} inputs; a scale, a zero point and some (tensor, scale, zero point) expected",
                c.node.inputs.size());
  std::vector<ValueId> parts;
  for (size_t i = 2; i < c.node.inputs.size(); i += 3) parts.push_back(dequantised(c, i));
  const ValueId joined =
      c.op("Concat").inputs(parts).attribute("axis", c.attributes().integer("axis"));
  return Values{quantised(c, joined, 0, type)};
}

Result<Values> convolution(ComposeContext& c) {
  const Writer w(c);
  const bool last = c.attributes().integer("channels_last") != 0;
  Attributes rest = c.attributes();
  rest.erase("channels_last");
  std::vector<ValueId> inputs = c.node.inputs;
  Channels order;
  if (last) {
    HOLOGRAM_TRY(order, channels_of(c, 0));
    inputs[0] = w.transpose(inputs[0], order.to_second);
  }
  ValueId y = c.op("QLinearConv").inputs(inputs).attributes(rest);
  if (last) y = w.transpose(y, order.to_last);
  return Values{y};
}

// A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias.
Result<Values> matmul_to_float(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(2).dtype;
  if (const auto& scale = c.type(2).shape; scale && scale->rank() > 0 && (*scale)[0] != Dim(1))
    return fail(ErrorCode::unsupported, "a_scale {}; supported: one number", scale->to_string());
  NodeBuilder node = c.op("MatMulInteger");
  node.input(c.in(0)).input(c.in(1));
  node.input(c.has(4) ? c.in(4) : kNoValue).input(c.has(5) ? c.in(5) : kNoValue);
  const ValueId product = w.cast(node.output(), type);
  ValueId y = w.mul(product, w.mul(c.in(2), c.in(3)));
  if (c.has(6)) y = w.add(y, c.in(6));
  return Values{y};
}

// A, B, b_scale, b_zero_point, bias: A is quantised on the way.
Result<Values> dynamic_matmul(ComposeContext& c) {
  NodeBuilder a = c.op("DynamicQuantizeLinear");
  a.input(c.in(0)).outputs(3);
  NodeBuilder node = c.op("MatMulIntegerToFloat", kMicrosoft);
  node.input(a.output(0)).input(c.in(1)).input(a.output(1)).input(c.in(2)).input(a.output(2));
  node.input(c.has(3) ? c.in(3) : kNoValue).input(c.has(4) ? c.in(4) : kNoValue);
  return Values{node.output()};
}

// A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point. C is an i32 in
// units of a_scale * b_scale.
Result<Values> gemm(ComposeContext& c) {
  const Writer w(c);
  const auto a = c.type(0).shape, b = c.type(3).shape;
  auto operand = [&](size_t index, bool transposed) {
    return transposed ? w.transpose(c.in(index), {1, 0}) : c.in(index);
  };
  const ValueId left = operand(0, c.attributes().integer("transA") != 0);
  const ValueId right = operand(3, c.attributes().integer("transB") != 0);
  ValueId sum = w.call("MatMulInteger", {left, right, c.in(2), c.in(5)});
  if (c.has(6)) sum = w.add(sum, c.in(6));
  const ValueId scale =
      w.mul(w.mul(c.in(1), c.in(4)), w.number(DType::f32, c.attributes().number("alpha", 1)));
  const ValueId y = w.mul(w.cast(sum, DType::f32), scale);
  if (!c.has(7)) return Values{y};
  return Values{quantised(c, y, 7, c.graph.value(c.in(8)).type.dtype)};
}

Status gemm_types(InferContext& c) {
  if (c.has(7) != c.has(8))
    return fail(ErrorCode::invalid_argument, "y_scale and y_zero_point come together");
  c.set_dtype(0, c.has(8) ? c.dtype(8) : DType::f32);
  return {};
}

// [directions, rows, columns] bytes -> f32 [directions, columns, rows]. Scales are one a direction,
// or one a column of each.
Result<ValueId> recurrent_weights(ComposeContext& c, size_t index, size_t scale) {
  const Writer w(c);
  const auto& shape = c.type(scale).shape;
  if (!shape) return fail(ErrorCode::unsupported, "scales of unknown rank; supported: known ranks");
  const std::vector<int64_t> axes =
      shape->rank() == 2 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2};
  const ValueId zero = w.unsqueeze(w.cast(c.in(scale + 1), DType::f32), axes);
  const ValueId centred = w.sub(w.cast(c.in(index), DType::f32), zero);
  return w.transpose(w.mul(centred, w.unsqueeze(c.in(scale), axes)), {0, 2, 1});
}

// The products take 8-bit inputs and states, whose range is measured while running.
Result<Values> dynamic_lstm(ComposeContext& c) {
  HOLOGRAM_TRY(const ValueId weights, recurrent_weights(c, 1, 8));
  HOLOGRAM_TRY(const ValueId recurrence, recurrent_weights(c, 2, 10));
  NodeBuilder x = c.op("DynamicQuantizeLinear");
  x.input(c.in(0)).outputs(3);
  const ValueId rounded =
      c.op("DequantizeLinear").input(x.output(0)).input(x.output(1)).input(x.output(2));
  NodeBuilder node = c.op("LSTMOfBytes", "hologram");
  node.input(rounded).input(weights).input(recurrence);
  for (size_t i = 3; i < 8; ++i) node.input(c.has(i) ? c.in(i) : kNoValue);
  node.attributes(c.attributes()).attribute("quantise_state", 1).outputs(3);
  return Values{node.output(0), node.output(1), node.output(2)};
}

Result<Values> same_in_onnx(ComposeContext& c) {
  return Values{c.op(c.node.op).inputs(c.node.inputs).attributes(c.attributes()).output()};
}

Status lstm_types(InferContext& c) {
  for (size_t i = 0; i < c.output_count(); ++i) c.set_dtype(i, DType::f32);
  return {};
}

Status quantise_type(InferContext& c) {
  c.set_dtype(0, c.has(2) ? c.dtype(2) : DType::u8);
  return same_shape_as_first(c);
}

}  // namespace

void add_microsoft_quantised(OperatorTable& table) {
  auto add = [&](const char* name, const char* signature, const char* attributes,
                 ComposeFunction f) {
    return table.add(name, kMicrosoft)
        .signature(signature)
        .where("T", kBytes)
        .attributes(attributes)
        .infer(no_shape)
        .compose(f);
  };
  const char* two =
      "A:T, A_scale:f32, A_zero_point:T?, B:T, B_scale:f32, B_zero_point:T?, C_scale:f32, "
      "C_zero_point:T? -> C:T";
  const char* one = "X:T, X_scale:f32, X_zero_point:T?, Y_scale:f32, Y_zero_point:T? -> Y:T";
  add("QLinearAdd", two, "", binary);
  add("QLinearMul", two, "", binary);
  add("QLinearLeakyRelu", one, "alpha:f", unary);
  add("QLinearSigmoid", one, "", unary);
  add("QLinearSoftmax", one, "axis:i, opset:i", softmax);
  add("QLinearReduceMean", one, "axes:I, keepdims:i", reduce_mean);
  add("QLinearAveragePool", one,
      "auto_pad:s, ceil_mode:i, channels_last:i, count_include_pad:i, kernel_shape:I, pads:I, "
      "strides:I",
      pool);
  add("QLinearGlobalAveragePool", one, "channels_last:i", pool);
  add("QLinearWhere",
      "condition:bool, X:T, x_scale:f32, x_zero_point:T, Y:T, y_scale:f32, y_zero_point:T, "
      "z_scale:f32, z_zero_point:T -> Z:T",
      "", where);
  add("QLinearConcat", "Y_scale:f32, Y_zero_point:T, inputs:V... -> Y:T", "axis:i", concat);
  add("QLinearConv",
      "x:T, x_scale:f32, x_zero_point:T, w:T2, w_scale:f32, w_zero_point:T2, y_scale:f32, "
      "y_zero_point:T3, B:i32? -> y:T3",
      "auto_pad:s, channels_last:i, dilations:I, group:i, kernel_shape:I, pads:I, strides:I",
      convolution)
      .where("T2", kBytes)
      .where("T3", kBytes);
  add("MatMulIntegerToFloat",
      "A:T, B:T2, a_scale:T3, b_scale:T3, a_zero_point:T?, b_zero_point:T2?, bias:T3? -> Y:T3", "",
      matmul_to_float)
      .where("T2", kBytes)
      .where("T3", {DType::f16, DType::f32})
      .infer([](InferContext& c) { return matmul_shape(c, 0, 1); });
  add("DynamicQuantizeMatMul", "A:f32, B:T, b_scale:f32, b_zero_point:T?, bias:f32? -> Y:f32", "",
      dynamic_matmul);
  add("QGemm",
      "A:T, a_scale:f32, a_zero_point:T, B:T2, b_scale:f32, b_zero_point:T2, C:i32?, "
      "y_scale:f32?, y_zero_point:T3? -> Y:T4",
      "alpha:f, transA:i, transB:i", gemm)
      .where("T2", kBytes)
      .where("T3", kBytes)
      .where("T4", kBytes | TypeSet{DType::f32})
      .infer(gemm_types);
  const std::string lstm =
      "activation_alpha:F, activation_beta:F, activations:S, clip:f, direction:s, hidden_size:i, "
      "input_forget:i";
  add("DynamicQuantizeLSTM",
      "X:f32, W:T, R:T, B:f32?, sequence_lens:i32?, initial_h:f32?, initial_c:f32?, P:f32?, "
      "W_scale:f32, W_zero_point:T, R_scale:f32, R_zero_point:T -> Y:f32?, Y_h:f32?, Y_c:f32?",
      lstm.c_str(), dynamic_lstm);
  table.add("LSTMOfBytes", "hologram")
      .signature(
          "X:f32, W:f32, R:f32, B:f32?, sequence_lens:i32?, initial_h:f32?, initial_c:f32?, "
          "P:f32? -> Y:f32?, Y_h:f32?, Y_c:f32?")
      .attributes(lstm + ", quantise_state:i")
      .infer(lstm_types)
      .kernel("LSTM");
  constexpr TypeSet kStored = {DType::i8,  DType::u8, DType::i16, DType::u16,
                               DType::i32, DType::i4, DType::u4};
  table.add("DequantizeLinear", kMicrosoft)
      .signature("x:T, x_scale:T2, x_zero_point:T? -> y:T2")
      .where("T", kStored)
      .where("T2", {DType::f16, DType::f32})
      .attributes("axis:i")
      .infer(same_shape_as_first)
      .compose(same_in_onnx);
  table.add("QuantizeLinear", kMicrosoft)
      .signature("x:T, y_scale:T, y_zero_point:T2? -> y:T3")
      .where("T", {DType::f16, DType::f32})
      .where("T2", kStored)
      .where("T3", kStored)
      .attributes("axis:i")
      .infer(quantise_type)
      .compose(same_in_onnx);
}

}  // namespace hologram::graph::ops
