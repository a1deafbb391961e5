// Attention and what models put around it.
#include "graph/infer.h"
#include "graph/ops/attention_flex.h"
#include "graph/ops/families.h"

namespace hologram::graph::ops {
namespace {

constexpr TypeSet kActivations = {DType::f16, DType::bf16, DType::f32};

Shape shape_of(std::initializer_list<Dim> dims) { return Shape(std::vector<Dim>(dims)); }

Status attention(InferContext& c) {
  if (c.wants(1)) c.set_dtype(1, c.dtype(1));
  if (c.wants(2)) c.set_dtype(2, c.dtype(2));
  if (c.wants(3)) c.set_dtype(3, c.dtype(0));
  const Shape *q = c.shape(0), *k = c.shape(1), *v = c.shape(2);
  if (!q || !k || !v) return {};
  const size_t rank = q->rank();
  if ((rank != 3 && rank != 4) || k->rank() != rank || v->rank() != rank)
    return fail(ErrorCode::shape_mismatch, "Q {}, K {} and V {}; all of rank 3 or all of rank 4",
                q->to_string(), k->to_string(), v->to_string());
  Dim heads(0), kv_heads(0), head_size(0), v_head_size(0);
  if (rank == 3) {
    const int64_t q_heads = c.integer("q_num_heads"), kv = c.integer("kv_num_heads");
    if (q_heads < 1 || kv < 1)
      return fail(ErrorCode::invalid_argument,
                  "q_num_heads {} and kv_num_heads {}; inputs of rank 3 need both", q_heads, kv);
    heads = Dim(q_heads), kv_heads = Dim(kv);
    head_size = (*k)[2] / kv_heads, v_head_size = (*v)[2] / kv_heads;
    c.set_shape(0, shape_of({(*q)[0], (*q)[1], heads * v_head_size}));
  } else {
    heads = (*q)[1], kv_heads = (*k)[1], head_size = (*k)[3], v_head_size = (*v)[3];
    c.set_shape(0, shape_of({(*q)[0], heads, (*q)[2], v_head_size}));
  }
  const Shape* past = c.shape(4);
  if (c.has(4) && (!past || past->rank() != 4)) return {};
  const Dim total = past ? (*past)[2] + (*k)[rank - 2] : (*k)[rank - 2];
  c.set_shape(1, shape_of({(*q)[0], kv_heads, total, head_size}));
  c.set_shape(2, shape_of({(*q)[0], kv_heads, total, v_head_size}));
  c.set_shape(3, shape_of({(*q)[0], heads, (*q)[rank - 2], total}));
  return {};
}

Status linear_attention(InferContext& c) {
  if (c.wants(1)) c.set_dtype(1, c.has(3) ? c.dtype(3) : c.dtype(0));
  const Shape *q = c.shape(0), *k = c.shape(1), *v = c.shape(2);
  const int64_t q_heads = c.integer("q_num_heads"), kv_heads = c.integer("kv_num_heads");
  if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
    return fail(ErrorCode::invalid_argument,
                "q_num_heads {} and kv_num_heads {}; the first is a multiple of the second",
                q_heads, kv_heads);
  if (!q || !k || !v || q->rank() != 3 || k->rank() != 3 || v->rank() != 3) return {};
  const Dim v_size = (*v)[2] / Dim(kv_heads);
  c.set_shape(0, shape_of({(*q)[0], (*q)[1], v_size * Dim(q_heads)}));
  c.set_shape(1, shape_of({(*q)[0], Dim(kv_heads), (*k)[2] / Dim(kv_heads), v_size}));
  return {};
}

Status swiglu_shape(InferContext& c) {
  const Shape *a = c.shape(0), *b = c.shape(1);
  if (a && b && a->rank() != b->rank())
    return fail(ErrorCode::shape_mismatch, "A {} and B {} differ", a->to_string(), b->to_string());
  for (size_t i = 0; a && b && i < a->rank(); ++i)
    if (!(*a)[i].is_symbol() && !(*b)[i].is_symbol() && (*a)[i] != (*b)[i])
      return fail(ErrorCode::shape_mismatch, "A {} and B {} differ", a->to_string(),
                  b->to_string());
  return same_shape_as_first(c);
}

isa::Register swiglu(PointwiseContext& p) {
  const isa::Register scaled = p.b.mul(p.in(0), p.number(p.attributes.number("alpha", 1)));
  const isa::Register gate = p.b.mul(p.in(0), p.b.unary(isa::Opcode::sigmoid, scaled));
  return p.b.mul(gate, p.in(1));
}

}  // namespace

void add_attention(OperatorTable& table) {
  table.add("Attention")
      .signature(
          "Q:T1, K:T1, V:T2, attn_mask:U?, past_key:T1?, past_value:T2?, nonpad_kv_seqlen:i64? -> "
          "Y:T1, present_key:T1?, present_value:T2?, qk_matmul_output:T1?")
      .where("T1", kFloats)
      .where("T2", kFloats)
      .where("U", kNumbers | kBool)
      .attributes(
          "is_causal:i, kv_num_heads:i, left_window_size:i, q_num_heads:i, "
          "qk_matmul_output_mode:i, right_window_size:i, scale:f, softcap:f, softmax_precision:i")
      .infer(attention)
      .kernel();
  table.add("FlexAttention", "ai.onnx.preview")
      .signature("Q:T1, K:T1, V:T1 -> Y:T1")
      .where("T1", kFloats)
      .attributes("scale:f, softmax_precision:i")
      .infer(flex_attention_shape)
      .compose(flex_attention);
  table.add("LinearAttention")
      .signature(
          "query:T, key:T, value:T, past_state:S?, decay:T?, beta:T? -> output:T, "
          "present_state:S2?")
      .where("T", kActivations)
      .where("S", kActivations)
      .where("S2", kActivations)
      .attributes("chunk_size:i, kv_num_heads:i, q_num_heads:i, scale:f, update_rule:s")
      .infer(linear_attention)
      .kernel();
  table.add("RotaryEmbedding")
      .signature("X:T, cos_cache:T, sin_cache:T, position_ids:i64? -> Y:T")
      .where("T", kActivations)
      .attributes("interleaved:i, num_heads:i, rotary_embedding_dim:i")
      .infer(same_shape_as_first)
      .kernel();
  table.add("SwiGLU")
      .signature("A:T, B:T -> Y:T")
      .where("T", kFloats)
      .attributes("alpha:f")
      .infer(swiglu_shape)
      .pointwise(swiglu);
}

}  // namespace hologram::graph::ops
