// What the kernels of attention share: a block of queries of one head of one sample, and how its
// rows of scores are laid out and weighed.
//
// Internal to attention.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backends/cpu/dense/attention.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

namespace hologram::backends::dense {

inline constexpr size_t kKeyBlock = 128;
// Whether products are narrow (attention_narrow.cpp).
bool is_narrow(const Attention& attention);
// A block packs its keys once, so a large one is better, except that it skips fewer masked keys
// (which narrow products skip by tiles of queries) and leaves less to share among threads.
inline size_t query_block(const Attention& a) {
  if (is_narrow(a))
    return std::min<size_t>(512, align_up(std::max<size_t>(a.queries, 1), 2 * kChunk));
  // The scores of all keys should stay in L2.
  if (a.ordered) return std::clamp<size_t>(65536 / std::max<size_t>(a.keys, 1), 16, 128);
  return a.causal ? 64 : 128;
}
// Keys that are weighed together.
inline size_t key_block(const Attention& a) {
  return a.ordered ? align_up(std::max<size_t>(a.keys, 1), kPanelColumns) : kKeyBlock;
}

struct AttentionJob {
  const Attention* a;
  size_t sample, head, first, count;
  float* scratch;

  size_t kv_head() const { return head / (a->heads / a->kv_heads); }
  const float* q() const {
    return a->q + sample * a->q_strides.batch + head * a->q_strides.head + first * a->q_strides.row;
  }
  const float* k() const {
    return a->k + sample * a->k_strides.batch + kv_head() * a->k_strides.head;
  }
  const float* v() const {
    return a->v + sample * a->v_strides.batch + kv_head() * a->v_strides.head;
  }
  // Of the block's first query and the first key; null without a mask.
  const float* mask() const {
    return a->mask ? a->mask + sample * a->mask_strides.batch + head * a->mask_strides.head +
                         first * a->mask_strides.row
                   : nullptr;
  }
  float* out() const {
    return a->out + sample * a->out_strides.batch + head * a->out_strides.head +
           first * a->out_strides.row;
  }
  // Keys beyond the last one any query of the block sees are not touched.
  size_t visible() const { return seen(count - 1, 0, a->keys); }
  // How many of `keys` keys from `key` on query `row` of the block sees.
  size_t seen(size_t row, size_t key, size_t keys) const {
    if (!a->causal) return keys;
    const ptrdiff_t last =
        static_cast<ptrdiff_t>(first + row) + a->causal_offset + 1 - static_cast<ptrdiff_t>(key);
    return last < 0 ? 0 : std::min(keys, static_cast<size_t>(last));
  }
};

// Hands out parts of a job's scratch, each aligned, counted in floats.
class AttentionLayout {
 public:
  size_t take(size_t floats) {
    const size_t place = total_;
    total_ += align_up(floats, kChunk);
    return place;
  }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

// Products of bf16 values, `parts` of them an operand, or of shorts (attention_narrow.cpp).
size_t narrow_attention_floats(const Attention& attention);
void attend_narrow(const AttentionJob& job);

}  // namespace hologram::backends::dense
