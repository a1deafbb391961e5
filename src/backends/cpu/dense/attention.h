// Scaled dot-product attention: softmax(cap(scale * Q K^T) + mask) V for every head, without
// ever writing the score matrix: queries and keys are taken in blocks, with a running base (the
// maximum, or near it) and sum a query.
//
// Bits do not depend on threads or batch. All pointers are borrowed; strides are in floats, values
// of a row are consecutive. A query that sees no key gives NaN, as the definition does.
#pragma once

#include <cstddef>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

struct HeadStrides {
  size_t batch, head, row;
};

struct Attention {
  size_t batch = 1, heads = 1;
  size_t kv_heads = 1;  // divides heads: neighbouring heads share keys and values
  size_t queries = 0, keys = 0;
  size_t depth = 0, value_depth = 0;  // of a query and key, of a value
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  float* out = nullptr;
  HeadStrides q_strides{}, k_strides{}, v_strides{}, out_strides{};
  float scale = 1.0f;
  float softcap = 0.0f;         // scores become softcap * tanh(score / softcap); 0: none
  const float* mask = nullptr;  // added to the scores; strides of 0 broadcast
  HeadStrides mask_strides{};
  bool causal = false;
  ptrdiff_t causal_offset = 0;  // query i sees the keys j <= i + causal_offset
  // Sums in the order of ONNX Runtime (docs/quantize.md): scores are scaled after their sum, the
  // weights of all keys are there, divided by their sum, before values are multiplied. Without
  // softcap and parts.
  bool ordered = false;
  // Operands of both products as so many bf16 values each (1 or 2, see Bf16Parts), which must be
  // finite; 0: f32. The softmax between them is as exact as what it makes: 0.7% of a weight for
  // one, 1e-5 for two.
  size_t parts = 0;
  // Operands of both products as 16-bit integers (see GemmShorts), which must be finite: queries
  // and keys by a scale each, weights by one for 16 keys, values by one for 128. Without softcap,
  // and where has_short_attention(); elsewhere in f32.
  bool shorts = false;
};

// Whether this CPU has the instructions for attention by shorts.
bool has_short_attention();

size_t attention_scratch_bytes(const Attention& attention);
void attention(const Attention& attention, std::byte* scratch, ThreadPool& pool);

}  // namespace hologram::backends::dense
