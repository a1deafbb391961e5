// The softmax of attention by bf16 products, over scores that lie turned: a row a key, 32 queries
// side by side. A vector then holds one score of 16 queries, so that what belongs to a query (its
// base, the sum of its weights) is a lane and nothing is added up across a vector; and a pair of
// rows of weights is a row of the right side that the second product reads, as it is written.
//
// Weights are powers of two of a score less its query's base, which is a score among the first keys
// rounded to a whole number, not the largest of all: bf16 has the exponents of f32, and only
// where the sum of a query's weights leaves 2^-10..2^24 its base is chosen anew and what was added
// up is scaled (`settle`). So scores are read once.
//
// Of one part, scores come in 1/128ths of a power of two: added to 127 * 128 and rounded, they are
// the bits of a bf16 but for the curve of 2^x between powers, which a table of 128 bytes holds.
// Such a weight is within 0.7% (rounding to bf16 alone: 0.4%), and the sums are those of what was
// rounded. Of two parts they are within 1e-5.
//
// Of shorts, the weights of 16 keys have a scale a query, by which the sums of their products are
// multiplied before they are added up: those of the largest weight, so that weights keep 13 bits of
// it and more of the others' sum.
//
// Internal to attention. For CPUs with AVX512_BF16 and VBMI (all that have AMX), and VNNI for
// shorts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/dense/attention.h"

namespace hologram::backends::dense {

inline constexpr size_t kPanelQueries = 32;
inline constexpr size_t kGroupKeys = 16;  // what is weighed at a time

enum class TurnedForm : uint8_t { one_part, two_parts, shorts };
inline TurnedForm turned_form(const Attention& a) {
  return a.shorts       ? TurnedForm::shorts
         : a.parts == 2 ? TurnedForm::two_parts
                        : TurnedForm::one_part;
}

// What belongs to a panel of queries.
struct alignas(64) TurnedPanel {
  float base[kPanelQueries];
  float sum[kPanelQueries];
  bool begun;  // whether there is a base
};

// A panel's scores of one block of keys, on their way to weights.
struct TurnedBlock {
  float* scores = nullptr;      // [key][32]
  size_t keys = 0;              // a multiple of 32; those that nobody sees are -infinity
  uint32_t* weights = nullptr;  // [32 keys][part][16 pairs][32]
  float* scales = nullptr;      // of shorts: [16 keys][32]
  TurnedPanel* panel = nullptr;
  float* sums = nullptr;  // 32: of this block's weights
};

struct TurnedKernels {
  // What a score and a mask are multiplied with before they are added.
  float unit;
  // Rows of 32 queries of `depth` <= 32 values, times `factor`; zeros beyond. `to` is [32][32].
  void (*scale_queries)(const float* from, size_t stride, size_t rows, size_t depth, float factor,
                        float* to);
  // scores[key][query] += mask * unit. The mask is [key], or [key][32] where it is `turned`.
  void (*add_mask)(const float* mask, bool turned, size_t keys, float* scores);
  // Keys below `keys` that queries do not see: the first one sees those below `first` (which may
  // be negative), each next one more.
  void (*hide)(ptrdiff_t first, size_t keys, float* scores);
  // Chooses the first base.
  void (*begin)(const TurnedBlock& block);
  // 16 keys from `key` on: writes their weights, adds to the block's sums.
  void (*weigh)(const TurnedBlock& block, size_t key);
  // Adds the block's sums to the panel's, after all keys; chooses bases anew and scales `out`,
  // `rows` of 32 floats, where sums left their range.
  void (*settle)(const TurnedBlock& block, float* out, size_t rows);
  // out += sums, and out /= sum of the query, `rows` of 32 floats.
  void (*add)(const float* sums, size_t rows, float* out);
  void (*divide)(const TurnedPanel& panel, size_t rows, float* out);
  // Of shorts: values as rows of a product. Up to 16 columns of `rows` floats become integers by
  // units that they find: `to` is [pair of rows][16].
  void (*value_units)(const float* from, size_t stride, size_t rows, size_t columns, float* units);
  void (*value_pairs)(const float* from, size_t stride, size_t rows, size_t columns,
                      const float* units, uint32_t* to);
  // out += sums * units of the rows.
  void (*add_scaled)(const float* sums, const float* units, size_t rows, float* out);
};

// Null where the CPU has no such instructions.
const TurnedKernels* turned_kernels(TurnedForm form);

// Attention without a cap (attention_turned.cpp).
struct AttentionJob;
struct UnitKernels;
size_t turned_attention_floats(const Attention& attention);
void attend_turned(const AttentionJob& job, const UnitKernels& units, const TurnedKernels& kernels);

}  // namespace hologram::backends::dense
