// com.microsoft: Attention, QAttention, MultiHeadAttention and RotaryEmbedding, on the standard's
// Attention and RotaryEmbedding.
#include <algorithm>
#include <limits>

#include "graph/infer.h"
#include "graph/ops/compose.h"
#include "graph/ops/microsoft.h"
#include "graph/ops/microsoft_query_groups.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kActivations = {DType::f16, DType::bf16, DType::f32};

// Padding as ONNX Runtime masks it: `filter` is added to the score of a key that is padding, so a
// query with nothing but padding still sees all keys alike. `mask` is lengths [batch], ends and
// starts [2 * batch], or flags [batch, total] or [batch, rows, total]. The result broadcasts to
// [batch, heads, rows, total].
Result<ValueId> padding_bias(ComposeContext& c, ValueId mask, const Dim& batch, ValueId total,
                             DType type) {
  const Writer w(c);
  const auto shape = c.graph.value(mask).type.shape;
  const double filter = c.attributes().number("mask_filter_value", -10000);
  ValueId allowed;
  if (shape && (shape->rank() == 2 || shape->rank() == 3)) {
    const ValueId flags = w.call("Greater", {mask, w.number(DType::i32, 0)});
    allowed = w.unsqueeze(
        flags, shape->rank() == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
  } else if (shape && shape->rank() == 1 &&
             ((*shape)[0] == batch || (*shape)[0] == Dim(2) * batch)) {
    const ValueId keys = w.range(w.call("Squeeze", {total, w.list({0})}));
    const ValueId limits = w.cast(mask, DType::i64);
    auto column = [&](ValueId vector) { return w.reshape(vector, {-1, 1, 1, 1}); };
    if ((*shape)[0] == batch) {
      allowed = w.call("Less", {keys, column(limits)});
    } else {
      NodeBuilder halves = c.op("Split");
      halves.input(limits).attribute("num_outputs", 2).outputs(2);
      const ValueId ended = w.call("Less", {keys, column(halves.output(0))});
      const ValueId begun = w.call("GreaterOrEqual", {keys, column(halves.output(1))});
      allowed = w.call("And", {ended, begun});
    }
  } else {
    return fail(ErrorCode::unsupported,
                "a mask of shape {}; supported: [batch], [2 * batch], [batch, total] and [batch, "
                "rows, total]",
                shape ? shape->to_string() : "unknown");
  }
  return w.call("Where", {allowed, w.number(type, 0), w.number(type, filter)});
}

struct Attended {
  ValueId y, present_key, present_value, scores;
};

// The standard's operator on Q, K and V of rank 3 or 4, with a bias of the scores.
Attended attend(ComposeContext& c, ValueId q, ValueId k, ValueId v, ValueId bias, ValueId past_key,
                ValueId past_value) {
  const Attributes& a = c.attributes();
  NodeBuilder node = c.op("Attention");
  node.input(q).input(k).input(v).input(bias).input(past_key).input(past_value).outputs(4);
  if (c.graph.value(q).type.shape && c.graph.value(q).type.shape->rank() == 3)
    node.attribute("q_num_heads", a.integer("num_heads"))
        .attribute("kv_num_heads", a.integer("num_heads"));
  if (a.has("scale") && a.number("scale") != 0) node.attribute("scale", a.number("scale"));
  if (a.integer("unidirectional") != 0) node.attribute("is_causal", 1);
  node.attribute("qk_matmul_output_mode", 2);
  return {node.output(0), node.output(1), node.output(2), node.output(3)};
}

// Attention on what the projection made: [batch, rows, q + k + v]. `mask`, `past` and `bias` are
// the places of those inputs.
Result<Values> self_attention(ComposeContext& c, ValueId projected, int64_t width, DType type,
                              size_t mask, size_t past, size_t bias) {
  const Writer w(c);
  const Attributes& a = c.attributes();
  for (const char* name : {"do_rotary", "past_present_share_buffer"})
    if (a.integer(name) != 0)
      return fail(ErrorCode::unsupported, "{}={}; supported: 0", name, a.integer(name));
  const auto given = a.integers("qkv_hidden_sizes");
  std::vector<int64_t> sizes(given.begin(), given.end());
  if (sizes.empty()) sizes.assign(3, width / 3);
  const auto outside = [&](int64_t size) { return size < 0 || size > width; };
  if (sizes.size() != 3 || std::ranges::any_of(sizes, outside) ||
      sizes[0] + sizes[1] + sizes[2] != width)
    return fail(ErrorCode::shape_mismatch, "qkv_hidden_sizes do not add up to {} columns", width);
  NodeBuilder parts = c.op("Split");
  parts.input(projected).input(w.list(sizes)).attribute("axis", -1).outputs(3);
  const ValueId q = parts.output(0), k = parts.output(1), v = parts.output(2);
  const auto shape = c.type(0).shape;
  ValueId past_key = kNoValue, past_value = kNoValue, total = w.dim(k, 1);
  if (c.has(past)) {
    past_key = w.gather(c.in(past), c.graph.constant(int64_t{0}));
    past_value = w.gather(c.in(past), c.graph.constant(int64_t{1}));
    total = w.add(total, w.dim(c.in(past), 3));
  }
  ValueId added = c.has(bias) ? c.in(bias) : kNoValue;
  if (c.has(mask)) {
    HOLOGRAM_TRY(const ValueId padding,
                 padding_bias(c, c.in(mask), shape ? (*shape)[0] : Dim(0), total, type));
    added = added == kNoValue ? padding : w.add(added, padding);
  }
  const Attended r = attend(c, q, k, v, added, past_key, past_value);
  if (c.node.outputs.size() < 2) return Values{r.y};
  const ValueId present =
      w.concat({w.unsqueeze(r.present_key, {0}), w.unsqueeze(r.present_value, {0})}, 0);
  return Values{r.y, present};
}

Result<int64_t> columns_of(const ComposeContext& c, size_t weights) {
  const auto& shape = c.type(weights).shape;
  if (!shape || shape->rank() != 2 || (*shape)[1].is_symbol())
    return fail(ErrorCode::unsupported, "weights of shape {}; supported: matrices of known size",
                shape ? shape->to_string() : "unknown");
  return (*shape)[1].value();
}

// input, weights, bias, mask_index, past, attention_bias, past_sequence_length.
Result<Values> attention(ComposeContext& c) {
  const Writer w(c);
  const DType type = c.type(0).dtype;
  HOLOGRAM_TRY(const int64_t width, columns_of(c, 1));
  ValueId projected = w.call("MatMul", {c.in(0), c.in(1)});
  if (c.has(2)) projected = w.add(projected, c.in(2));
  return self_attention(c, projected, width, type, 3, 4, 5);
}

// input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point, weight_zero_point,
// past.
Result<Values> quantised_attention(ComposeContext& c) {
  HOLOGRAM_TRY(const int64_t width, columns_of(c, 1));
  const DType type = c.type(2).dtype;
  NodeBuilder project = c.op("MatMulIntegerToFloat", kMicrosoft);
  project.input(c.in(0)).input(c.in(1)).input(c.in(3)).input(c.in(4));
  project.input(c.has(6) ? c.in(6) : kNoValue).input(c.has(7) ? c.in(7) : kNoValue).input(c.in(2));
  return self_attention(c, project.output(), width, type, 5, 8, 99);
}

// One of the tensors packed along axis 3 of [batch, rows, heads, n, size].
ValueId unpacked(ComposeContext& c, ValueId packed, int64_t which) {
  const Writer w(c);
  return w.transpose(w.gather(packed, c.graph.constant(which), 3), {0, 2, 1, 3});
}

// query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value.
Result<Values> multi_head_attention(ComposeContext& c) {
  const Writer w(c);
  const auto shape = c.type(0).shape;
  const auto key_shape = c.has(1) ? c.type(1).shape : std::nullopt;
  const DType type = c.type(0).dtype;
  const int64_t heads = c.attributes().integer("num_heads");
  if (!shape || (c.has(1) && !key_shape))
    return fail(ErrorCode::unsupported, "inputs of unknown rank; supported: known ranks");
  if (heads < 1) return fail(ErrorCode::invalid_argument, "num_heads {}", heads);
  if (c.has(8) || c.has(9))
    return fail(ErrorCode::unsupported,
                "past_sequence_length and cache_indirection (shared buffers) are not supported");
  const bool packed = shape->rank() == 5, packed_kv = key_shape && key_shape->rank() == 5;
  const bool heads_apart = packed || packed_kv || (key_shape && key_shape->rank() == 4);
  ValueId q = c.in(0), k = c.has(1) ? c.in(1) : kNoValue, v = c.has(2) ? c.in(2) : kNoValue;
  if (packed ? c.has(1) || c.has(2) : !c.has(1) || packed_kv == c.has(2))
    return fail(ErrorCode::invalid_argument,
                "query {} with{} key and with{} value; expected: all three, a packed query alone, "
                "or a packed key without a value",
                shape->to_string(), c.has(1) ? "" : "out", c.has(2) ? "" : "out");
  if (c.has(3)) {
    if (packed || packed_kv)
      return fail(ErrorCode::unsupported, "a bias of packed inputs is not supported");
    const Dim hidden = shape->rank() == 3 ? (*shape)[2] : Dim(0);
    if (hidden.is_symbol() || hidden == Dim(0))
      return fail(ErrorCode::unsupported, "a bias of {}; supported: known hidden sizes",
                  shape->to_string());
    const int64_t size = hidden.value(), end = std::numeric_limits<int64_t>::max();
    q = w.add(q, w.slice(c.in(3), 0, 0, size));
    // Keys and values with their heads apart are a cache, which has its bias.
    if (!heads_apart) {
      k = w.add(k, w.slice(c.in(3), 0, size, 2 * size));
      v = w.add(v, w.slice(c.in(3), 0, 2 * size, end));
    }
  }
  if (packed) {
    k = unpacked(c, q, 1), v = unpacked(c, q, 2), q = unpacked(c, q, 0);
  } else if (packed_kv) {
    v = unpacked(c, k, 1), k = unpacked(c, k, 0);
  }
  if (heads_apart && !packed) q = w.transpose(w.reshape(q, {0, 0, heads, -1}), {0, 2, 1, 3});
  const ValueId past_key = c.has(6) ? c.in(6) : kNoValue;
  ValueId bias = c.has(5) ? c.in(5) : kNoValue;
  if (c.has(4)) {
    ValueId total = w.dim(k, heads_apart ? 2 : 1);
    if (c.has(6)) total = w.add(total, w.dim(past_key, 2));
    HOLOGRAM_TRY(const ValueId padding, padding_bias(c, c.in(4), (*shape)[0], total, type));
    bias = bias == kNoValue ? padding : w.add(bias, padding);
  }
  Attended r = attend(c, q, k, v, bias, past_key, c.has(7) ? c.in(7) : kNoValue);
  if (heads_apart) r.y = w.reshape(w.transpose(r.y, {0, 2, 1, 3}), {0, 0, -1});
  return Values{r.y, r.present_key, r.present_value, r.scores};
}

// input, position_ids, cos_cache, sin_cache.
Result<Values> rotary(ComposeContext& c) {
  const Writer w(c);
  const Attributes& a = c.attributes();
  const auto x = c.type(0).shape, positions = c.type(1).shape, cache = c.type(2).shape;
  if (a.number("scale", 1) != 1)
    return fail(ErrorCode::unsupported, "scale {}; supported: 1", a.number("scale"));
  if (a.integer("is_packed_batching") != 0)
    return fail(ErrorCode::unsupported, "is_packed_batching={}; supported: 0",
                a.integer("is_packed_batching"));
  if (!x || !positions || !cache || cache->rank() != 2)
    return fail(ErrorCode::unsupported, "inputs of unknown rank; supported: known ranks");
  int64_t heads = a.integer("num_heads");
  const int64_t turned = a.integer("rotary_embedding_dim");
  if (x->rank() == 3 && heads == 0) {
    if (turned != 0 || (*x)[2].is_symbol() || (*cache)[1].is_symbol() || (*cache)[1] == Dim(0))
      return fail(ErrorCode::unsupported,
                  "input {} and cos_cache {} without num_heads; supported: known sizes, and "
                  "num_heads beside rotary_embedding_dim",
                  x->to_string(), cache->to_string());
    heads = (*x)[2].value() / (2 * (*cache)[1].value());
  }
  ValueId ids = c.in(1);
  if (positions->rank() != 2) {  // the place of the first token
    const int64_t rows = x->rank() == 3 ? 1 : 2;
    const ValueId row = w.add(w.range(w.scalar_dim(c.in(0), rows)), w.reshape(ids, {-1}));
    ids = w.call("Expand", {row, w.concat({w.dim(c.in(0), 0), w.dim(c.in(0), rows)}, 0)});
  }
  return Values{c.op("RotaryEmbedding")
                    .input(c.in(0))
                    .input(c.in(2))
                    .input(c.in(3))
                    .input(ids)
                    .attribute("interleaved", a.integer("interleaved"))
                    .attribute("num_heads", heads)
                    .attribute("rotary_embedding_dim", turned)
                    .output()};
}

Status scores_type(InferContext& c) {
  if (c.wants(3)) c.set_dtype(3, c.dtype(0));
  return {};
}

}  // namespace

void add_microsoft_attention(OperatorTable& table) {
  table.add("Attention", kMicrosoft)
      .signature(
          "input:T, weights:T, bias:T?, mask_index:i32?, past:T?, attention_bias:T?, "
          "past_sequence_length:i32? -> output:T, present:T?")
      .where("T", kActivations)
      .attributes(
          "do_rotary:i, mask_filter_value:f, num_heads:i, past_present_share_buffer:i, "
          "qkv_hidden_sizes:I, rotary_embedding_dim:i, scale:f, unidirectional:i")
      .infer(no_shape)
      .compose(attention);
  table.add("QAttention", kMicrosoft)
      .signature(
          "input:T1, weight:T2, bias:T3, input_scale:T3, weight_scale:T3, mask_index:i32?, "
          "input_zero_point:T1?, weight_zero_point:T2?, past:T3? -> output:T3, present:T3?")
      .where("T1", {DType::i8, DType::u8})
      .where("T2", {DType::i8, DType::u8})
      .where("T3", {DType::f16, DType::f32})
      .attributes(
          "do_rotary:i, mask_filter_value:f, num_heads:i, past_present_share_buffer:i, scale:f, "
          "unidirectional:i")
      .infer(no_shape)
      .compose(quantised_attention);
  table.add("MultiHeadAttention", kMicrosoft)
      .signature(
          "query:T, key:T?, value:T?, bias:T?, key_padding_mask:i32?, attention_bias:T?, "
          "past_key:T?, past_value:T?, past_sequence_length:i32?, cache_indirection:i32? -> "
          "output:T, present_key:T?, present_value:T?, qk:QK?")
      .where("T", kActivations)
      .where("QK", kActivations)
      .attributes("mask_filter_value:f, num_heads:i, scale:f, unidirectional:i")
      .infer(scores_type)
      .compose(multi_head_attention);
  table.add("RotaryEmbedding", kMicrosoft)
      .signature("input:T, position_ids:i64, cos_cache:T, sin_cache:T -> output:T")
      .where("T", kActivations)
      .attributes(
          "interleaved:i, is_packed_batching:i, num_heads:i, rotary_embedding_dim:i, scale:f")
      .infer(same_shape_as_first)
      .compose(rotary);
  table.add("GroupQueryAttention", kMicrosoft)
      .signature(
          "query:T, key:T?, value:T?, past_key:T?, past_value:T?, seqlens_k:i32, "
          "total_sequence_length:i32, cos_cache:T?, sin_cache:T?, position_ids:i64?, "
          "attention_bias:T?, head_sink:T?, k_scale:f32?, v_scale:f32?, q_norm_weight:T?, "
          "k_norm_weight:T? -> output:T, present_key:T?, present_value:T?, output_qk:T?")
      .where("T", kActivations)
      .attributes(
          "causal:i, do_rotary:i, k_quant_type:s, kv_cache_bit_width:i, kv_num_heads:i, "
          "local_window_size:i, num_heads:i, qk_norm_epsilon:f, qk_output:i, "
          "rotary_interleaved:i, scale:f, sliding_window_cache:i, smooth_softmax:i, softcap:f, "
          "v_quant_type:s")
      .infer(no_shape)
      .compose(group_query_attention);
}

}  // namespace hologram::graph::ops
