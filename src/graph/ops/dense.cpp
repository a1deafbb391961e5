// Operators of the domain "hologram", which passes make and no model names. See kernels/fused.h.
#include <algorithm>

#include "graph/infer.h"
#include "graph/ops/families.h"
#include "graph/ops/window.h"

namespace hologram::graph::ops {
namespace {

constexpr int64_t kBlock = 16;

Shape plain(const Shape& blocked, Dim channels) {
  std::vector<Dim> dims = blocked.dims();
  dims.pop_back();
  dims[1] = std::move(channels);
  return Shape(std::move(dims));
}

Shape blocked(const Shape& plain) {
  std::vector<Dim> dims = plain.dims();
  dims[1] = ceil_div(dims[1], kBlock);
  dims.push_back(kBlock);
  return Shape(std::move(dims));
}

std::vector<Dim> to_dims(std::span<const int64_t> values) {
  return std::vector<Dim>(values.begin(), values.end());
}

Status conv(InferContext& c) {
  const auto weights = c.integers("weight_shape");
  // Sines of a Fourier transform that are apart have the shape of its cosines.
  const auto set_shapes = [&](const Shape& shape) {
    for (size_t i = 0; i < c.output_count(); ++i) c.set_shape(i, shape);
  };
  if (weights.size() < 3) return {};
  if (!c.shape(0)) {
    std::vector<Dim> dims(weights.size(), unknown_dim());
    dims[1] = weights[0];
    const Shape y(std::move(dims));
    set_shapes(c.integer("blocked_output") != 0 ? blocked(y) : y);
    return {};
  }
  const bool from_blocks = c.integer("blocked_input") != 0;
  const Shape x =
      from_blocks ? plain(*c.shape(0), Dim(weights[1]) * Dim(c.integer("group", 1))) : *c.shape(0);
  if (x.rank() != weights.size())
    return fail(ErrorCode::shape_mismatch, "input {} and weights of {} axes", x.to_string(),
                weights.size());
  HOLOGRAM_TRY(const Shape y, windowed_shape(c, x, weights[0], to_dims(weights.subspan(2)), false));
  set_shapes(c.integer("blocked_output") != 0 ? blocked(y) : y);
  return {};
}

// The attribute `output` says the type of an image that is not f32.
Status image_type(InferContext& c) {
  const int64_t code = c.integer("output");
  if (code != 0 && code != static_cast<int64_t>(DType::bf16))
    return fail(ErrorCode::invalid_argument, "output {} is neither f32 nor bf16", code);
  c.set_dtype(0, code == 0 ? DType::f32 : DType::bf16);
  return {};
}

Status float_conv(InferContext& c) {
  HOLOGRAM_CHECK(image_type(c));
  return conv(c);
}

Status matmul(InferContext& c) {
  if (c.attributes().has("shape")) {
    c.set_shape(0, Shape(c.integers("shape")));
    return {};
  }
  if (!c.shape(0) || c.shape(0)->rank() == 0) return {};
  std::vector<Dim> dims = c.shape(0)->dims();
  dims.back() = c.integer("n");
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

// The attribute `output` says the type of the result; without it that is f32 where there is a
// scale.
Status integer_result(InferContext& c) {
  const int64_t code = c.integer("output");
  if (code == 0) {
    c.set_dtype(0, c.has(4) ? DType::f32 : DType::i32);
    return {};
  }
  const auto type =
      code > 0 && code < 256 ? dtype_from_code(static_cast<uint8_t>(code)) : std::nullopt;
  if (!type || (*type != DType::f32 && *type != DType::i8 && *type != DType::u8))
    return fail(ErrorCode::invalid_argument, "output {} is neither f32, i8 nor u8", code);
  c.set_dtype(0, *type);
  return {};
}

Status matmul_integer(InferContext& c) {
  HOLOGRAM_CHECK(integer_result(c));
  return matmul(c);
}

Status conv_integer(InferContext& c) {
  HOLOGRAM_CHECK(integer_result(c));
  return conv(c);
}

Status attention(InferContext& c) {
  if (c.attributes().has("shape")) {
    c.set_shape(0, Shape(c.integers("shape")));
    return {};
  }
  const auto known = [&](std::string_view name) {
    const int64_t value = c.integer(name, -1);
    return value < 0 ? Dim(std::string("?")) : Dim(value);
  };
  const Dim batch = known("batch"), queries = known("queries");
  const int64_t heads = c.integer("heads"), depth = c.integer("value_depth");
  if (c.integer("merged") != 0)
    c.set_shape(0, Shape(std::vector<Dim>{batch, queries, heads * depth}));
  else if (c.integer("rows_first") != 0)
    c.set_shape(0, Shape(std::vector<Dim>{batch, queries, heads, depth}));
  else
    c.set_shape(0, Shape(std::vector<Dim>{batch, heads, queries, depth}));
  return {};
}

Status to_blocked(InferContext& c) {
  if (c.shape(0)) c.set_shape(0, blocked(*c.shape(0)));
  return {};
}

Status from_blocked(InferContext& c) {
  if (c.shape(0)) c.set_shape(0, plain(*c.shape(0), c.integer("channels")));
  return {};
}

Status pool(InferContext& c) {
  if (!c.shape(0)) return {};
  const Shape x = plain(*c.shape(0), (*c.shape(0))[1]);
  HOLOGRAM_TRY(const Shape y, windowed_shape(c, x, x[1], to_dims(c.integers("kernel_shape")),
                                             c.integer("ceil_mode") != 0));
  std::vector<Dim> dims = y.dims();
  dims.push_back(kBlock);
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status global_average(InferContext& c) {
  c.set_dtype(0, DType::f32);
  if (!c.shape(0)) return {};
  std::vector<Dim> dims = c.shape(0)->dims();
  for (size_t i = 2; i + 1 < dims.size(); ++i) dims[i] = 1;
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

// Each pixel becomes times[0] x times[1] of them.
Status spread(InferContext& c) {
  const auto times = c.integers("times");
  const Shape* x = c.shape(0);
  if (!x || x->rank() != 5 || times.size() != 2 || times[0] < 1 || times[1] < 1) return {};
  std::vector<Dim> dims = x->dims();
  if (c.integer("repeat") == 0) dims[1] = dims[1] / Dim(times[0] * times[1]);
  dims[2] = dims[2] * Dim(times[0]);
  dims[3] = dims[3] * Dim(times[1]);
  Shape y(std::move(dims));
  if (c.has(1)) {
    if (!c.shape(1)) return {};
    HOLOGRAM_TRY(y, broadcast_shapes(y, *c.shape(1)));
  }
  c.set_shape(0, std::move(y));
  return {};
}

Status scale(InferContext& c) {
  HOLOGRAM_CHECK(image_type(c));
  if (!c.shape(2)) return {};
  std::vector<Dim> dims = c.shape(2)->dims();
  for (size_t i = 3; i < c.input_count(); ++i) {
    if (!c.shape(i)) return {};
    dims[1] = dims[1] + (*c.shape(i))[1];
  }
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

Status gate(InferContext& c) {
  HOLOGRAM_CHECK(image_type(c));
  if (c.shape(0)) c.set_shape(0, *c.shape(0));
  return {};
}

// LSTM and GRU whose weights are packed: W and R say nothing about sizes.
Status recurrent(InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x || x->rank() != 3) return {};
  const bool batch_first = c.integer("layout") != 0;
  const Dim directions(c.text("direction", "forward") == "bidirectional" ? 2 : 1);
  const Dim steps = (*x)[batch_first ? 1 : 0], batch = (*x)[batch_first ? 0 : 1];
  const Dim hidden = c.integer("hidden_size");
  using Dims = std::vector<Dim>;
  c.set_shape(0, Shape(batch_first ? Dims{batch, steps, directions, hidden}
                                   : Dims{steps, directions, batch, hidden}));
  for (size_t i = 1; i < c.output_count(); ++i)
    c.set_shape(
        i, Shape(batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden}));
  return {};
}

Status gather_packed(InferContext& c) {
  if (!c.shape(1)) return {};
  std::vector<Dim> dims = c.shape(1)->dims();
  dims.push_back(c.integer("k"));
  c.set_shape(0, Shape(std::move(dims)));
  return {};
}

constexpr char kEpilogue[] =
    ", activation:s, activation_first:f, activation_second:f, residual_last:i, "
    "post_scale:f, post_shift:f, post_low:f";

}  // namespace

void add_dense(OperatorTable& table) {
  const auto add = [&](const char* name, const std::string& attributes, const char* signature,
                       InferFunction f) {
    table.add(name, "hologram")
        .signature(signature)
        .where("T", {DType::f32})
        .where("P", {DType::f32, DType::bf16, DType::f16, DType::u8})
        .where("PW", {DType::f32, DType::u8})
        .where("PR", {DType::f32, DType::u8})
        .where("TX", {DType::f32, DType::bf16})
        .where("TP", {DType::f32, DType::bf16})
        .where("TR", {DType::f32, DType::bf16})
        .where("TY", {DType::f32, DType::bf16})
        .attributes(attributes)
        .infer(f)
        .kernel(std::string("hologram.") + name);
  };
  const std::string epilogue = kEpilogue;
  add("Conv",
      "auto_pad:s, dilations:is, group:i, kernel_shape:is, pads:is, strides:is, weight_shape:is, "
      "blocked_input:i, blocked_output:i, algorithm:i, packed:i, parts:i, digits:i, digit_bits:i, "
      "half:i, exact:i, long_sums:i, output:i, mirrored:i, even:i, points_shape:is, "
      "points_parts:i, points_output:i, points_long_sums:i, points_activation:s, points_first:f, "
      "points_second:f, points_scale:f, points_shift:f, "
      "points_low:f" +
          epilogue,
      "X:TX, W:P, B:T?, residual:TR?, points:TP?, points_bias:T? -> Y:TY", float_conv);
  add("MatMul",
      "k:i, n:i, packed:i, parts:i, digits:i, digit_bits:i, half:i, bits:i, group:i, zeros:i, "
      "dynamic:i, transposed:i, alpha:f, shape:is" +
          epilogue,
      "A:T, B:P, bias:T?, residual:T?, scales:T?, zeros:T? -> Y:T", matmul);
  add("Attention",
      "batch:i, queries:i, keys:i, heads:i, kv_heads:i, depth:i, value_depth:i, scale:f, q:is, "
      "k:is, v:is, causal:i, rows_first:i, merged:i, shape:is, parts:i, digits:i, "
      "digit_bits:i, ordered:i",
      "Q:T, K:T, V:T, mask:T? -> Y:T", attention);
  add("Rotary", "heads:i", "X:T, cos:T, sin:T -> Y:T", same_shape_as_first);
  add("RotaryPairs", "", "X:T, cos:T, sin:T -> Y:T", same_shape_as_first);
  const auto add_integer = [&](const char* name, const std::string& attributes, InferFunction f) {
    table.add(name, "hologram")
        .signature(
            "X:T1, W:T2, x_zero:T1?, w_zero:i32?, scale:f32?, bias:f32?, residual:f32?, "
            "bias32:i32? -> Y:T3")
        .where("T1", {DType::u8, DType::i8})
        .where("T2", {DType::u8, DType::i8})
        .where("T3", {DType::i32, DType::f32, DType::u8, DType::i8})
        .attributes(attributes + ", packed:i, output:i, output_scale:f, output_zero:i" + epilogue)
        .infer(f)
        .kernel(std::string("hologram.") + name);
  };
  add_integer("MatMulInteger", "k:i, n:i", matmul_integer);
  add_integer("ConvInteger",
              "auto_pad:s, dilations:is, group:i, pads:is, strides:is, weight_shape:is, "
              "x_channels_last:i, y_channels_last:i",
              conv_integer);
  add("LSTM", "direction:s, hidden_size:i, input_size:i, layout:i",
      "X:T, W:PW, R:PR, B:T?, sequence_lens:i32?, initial_h:T?, initial_c:T?, P:T? -> Y:T?, "
      "Y_h:T?, Y_c:T?",
      recurrent);
  add("GRU", "direction:s, hidden_size:i, input_size:i, layout:i, linear_before_reset:i",
      "X:T, W:PW, R:PR, B:T?, sequence_lens:i32?, initial_h:T? -> Y:T?, Y_h:T?", recurrent);
  table.add("GatherPacked", "hologram")
      .signature("table:T, indices:I -> Y:T")
      .where("T", {DType::f32})
      .where("I", {DType::i32, DType::i64})
      .attributes("k:i, n:i")
      .infer(gather_packed)
      .kernel("hologram.GatherPacked");
  add("Activation", "activation:s, activation_first:f, activation_second:f", "X:T -> Y:T",
      same_shape_as_first);
  add("Fourier", "weight_shape:is, strides:is, waves:i, sine:i", "X:T, table:T -> Y:T, sines:T?",
      conv);
  add("Sine", "quarters:i", "X:T -> Y:T", same_shape_as_first);
  add("ToBlocked", "", "X:T -> Y:T", to_blocked);
  add("FromBlocked", "channels:i", "X:T -> Y:T", from_blocked);
  add("Pool",
      "kind:s, auto_pad:s, ceil_mode:i, count_include_pad:i, dilations:is, kernel_shape:is, "
      "pads:is, strides:is",
      "X:TX -> Y:TX", pool);
  add("GlobalAveragePool", "", "X:TX -> Y:T", global_average);
  add("Spread", "times:is, repeat:i", "X:TX, added:TX? -> Y:TX", spread);
  add("Scale", "activation:s, activation_first:f, activation_second:f, output:i, plus_one:i",
      "scale:T?, bias:T?, X:TX... -> Y:TY", scale);
  add("Gate",
      "channels:i, hidden:i, squeeze_activation:s, squeeze_first:f, squeeze_second:f, "
      "squeeze_scale:f, squeeze_shift:f, squeeze_low:f, excite_activation:s, excite_first:f, "
      "excite_second:f, excite_scale:f, excite_shift:f, excite_low:f, activation:s, "
      "activation_first:f, activation_second:f, plus_one:i, output:i",
      "X:TX, squeeze:T, excite:T, squeeze_bias:T?, excite_bias:T? -> Y:TY", gate);
}

}  // namespace hologram::graph::ops
