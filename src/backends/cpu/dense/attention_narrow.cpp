// Attention by products of bf16 values: UnitTile's kernels (tiles of AMX where there are some) with
// the softmax of the f32 kernel between them.
#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/attention_narrow.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/attention-inl.h"
#include "backends/cpu/dense/attention_job.h"
#include "backends/cpu/dense/attention_turned.h"
#include "backends/cpu/dense/transpose.h"
#include "backends/cpu/dense/unit_tile.h"

#ifndef HOLOGRAM_DENSE_ATTENTION_NARROW_ONCE_
#define HOLOGRAM_DENSE_ATTENTION_NARROW_ONCE_
namespace hologram::backends::dense {

// 32 values: what a chunk of units stands for, and the columns of a panel.
inline constexpr size_t kWide = 2 * kChunk;
inline constexpr size_t kMostChunks = kKeyBlock / kWide;
inline constexpr size_t kTileScores = kMaxUnitRows * kWide;
// From panel to panel of scores: not a multiple of 4 KiB, at which loads wait for stores that only
// look like theirs.
inline constexpr size_t kScorePanel = kTileScores + 8 * kWide;
inline constexpr size_t kTileWeights = kMaxUnitRows * kChunk;

// What one block of queries works in. Left sides are [part][chunk][row][16] units, right sides
// panels of [chunk][part][16][32]. Scores, [panel of 32 keys][row][32], weights and sums are those
// of one tile of queries, scores and sums of two of them: the next tile's scores are asked for
// before this one's are weighed, and the last one's sums are added after, so that products and
// vectors run side by side.
struct NarrowScratch {
  size_t rows;    // of queries: kernels read whole tiles of 32
  size_t depth;   // chunks of a query
  size_t values;  // panels of a value
  size_t q, steps, keys, scores, weights, value_units, sums, out, row;  // offsets in floats
  size_t total;
  explicit NarrowScratch(const Attention& a)
      : rows(align_up(query_block(a), kMaxUnitRows) + kUnitRowsBeyond),
        depth((a.depth + kWide - 1) / kWide),
        values((a.value_depth + kWide - 1) / kWide) {
    AttentionLayout layout;
    q = layout.take(a.parts * depth * rows * kChunk);
    steps = layout.take((depth + kMostChunks) * (sizeof(ptrdiff_t) / sizeof(float)));
    keys = layout.take(a.parts * depth * kChunk * kKeyBlock);
    scores = layout.take(2 * kMostChunks * kScorePanel);
    weights = layout.take((a.parts * kMostChunks * kMaxUnitRows + kUnitRowsBeyond) * kChunk);
    value_units = layout.take(values * a.parts * kKeyBlock / 2 * kWide);
    sums = layout.take(2 * values * kTileScores);
    out = layout.take(values * kWide * query_block(a));  // row-major
    row = layout.take(2 * query_block(a));               // maximum, sum
    total = layout.total();
  }
};
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

// to = to * factor + sums, over 32 columns.
HWY_INLINE void add_row(float* to, float factor, const float* sums) {
  const hn::ScalableTag<float> d;
  const auto f = hn::Set(d, factor);
  for (size_t j = 0; j < kWide; j += hn::MaxLanes(d))
    hn::Store(hn::MulAdd(hn::Load(d, to + j), f, hn::Load(d, sums + j)), d, to + j);
}

// weigh_row for scores without a cap and a positive factor, by fewer operations: without a mask the
// factor is part of the exponent's, so that the first pass only looks for the largest score.
// Weights are as exact as the parts that they become: 8e-5 of their value for one, 2e-7 for two.
template <bool kTwoParts, bool kMasked>
float weigh_parts_row(float* scores, size_t count, float factor, const float* mask, float& maximum,
                      float& sum) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  using V = hn::Vec<decltype(d)>;
  constexpr size_t kLanes = hn::MaxLanes(d);
  constexpr float kLog2E = 1.44269504f;
  const size_t whole = count / kLanes * kLanes, padded = (count + kChunk - 1) / kChunk * kChunk;
  const auto at = [&](size_t j) { return scores + j / kWide * kScorePanel + j % kWide; };
  const auto seen = [&](size_t j) HWY_ATTR { return hn::FirstN(d, count > j ? count - j : 0); };
  const V lowest = hn::Set(d, -HUGE_VALF);
  V peak = lowest;
  for (size_t j = 0; j < padded; j += kLanes) {
    V s = hn::Load(d, at(j));
    if constexpr (kMasked) {
      HWY_ALIGN float rest[kLanes] = {};
      const float* from = mask + j;
      if (j >= whole) {
        std::copy_n(from, count > j ? count - j : 0, rest);
        from = rest;
      }
      s = hn::MulAdd(s, hn::Set(d, factor), hn::LoadU(d, from));
      hn::Store(s, d, at(j));
    }
    peak = hn::Max(peak, j < whole ? s : hn::IfThenElse(seen(j), s, lowest));
  }
  // A NaN among the scores may be lost here, but not in the weights, which make the sum NaN.
  const float before = maximum, scaled = kMasked ? 1.0f : factor;
  maximum = std::max(before, scaled * hn::GetLane(hn::MaxOfLanes(d, peak)));
  // While everything is masked there is nothing to subtract from.
  const float base = maximum == -HUGE_VALF ? 0.0f : maximum;
  const V factors = hn::Set(d, scaled * kLog2E), bases = hn::Set(d, kMasked ? base : base * kLog2E);
  // As exp_in_range: the low bits of a number near 1.5 * 2^23 are the whole part of the exponent.
  const V magic = hn::Set(d, 12582912.0f + 127.0f), floor = hn::Set(d, -126.0f);
  V sums = hn::Zero(d);
  for (size_t j = 0; j < padded; j += kLanes) {
    // A mask may be the lowest number there is, which cannot be multiplied.
    const V s = hn::Load(d, at(j));
    const V given = kMasked ? hn::Mul(hn::Sub(s, bases), factors) : hn::MulSub(s, factors, bases);
    const V x = hn::Max(floor, given);
    const V shifted = hn::Add(x, magic);
    const V f = hn::Sub(x, hn::Sub(shifted, magic));
    V e;
    if constexpr (kTwoParts)
      e = horner(d, f, 1.00000012f, 0.693146944f, 0.240221202f, 0.0555071309f, 0.00967554189f,
                 0.00132764725f);
    else
      e = horner(d, f, 0.999928057f, 0.693260968f, 0.242611125f, 0.0551716685f);
    e = hn::Mul(e, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
    // What is masked weighs nothing; other weights below 2^-126 make no difference.
    if constexpr (kMasked) e = hn::IfThenZeroElse(hn::Lt(given, floor), e);
    if (j >= whole) e = hn::IfThenElseZero(seen(j), e);
    sums = hn::Add(sums, e);
    hn::Store(e, d, at(j));
  }
  const float scale = before == base ? 1.0f : before == -HUGE_VALF ? 0.0f : std::exp(before - base);
  sum = sum * scale + combine_lanes<SumOf>(d, sums);
  return scale;
}
using WeighRow = float (*)(float*, size_t, float, const float*, float&, float&);

void attend_parts(const AttentionJob& job, const UnitKernels& kernels) {
  const Attention& a = *job.a;
  const NarrowScratch places(a);
  const auto units = [&](size_t place) { return reinterpret_cast<uint32_t*>(job.scratch + place); };
  uint32_t *const q = units(places.q), *const keys = units(places.keys);
  uint32_t *const weights = units(places.weights), *const values = units(places.value_units);
  auto* const steps = reinterpret_cast<ptrdiff_t*>(job.scratch + places.steps);
  ptrdiff_t* const weight_steps = steps + places.depth;
  float *const scores = job.scratch + places.scores, *const sums = job.scratch + places.sums;
  float *const out = job.scratch + places.out, *const maxima = job.scratch + places.row;
  float* const totals = maxima + query_block(a);
  const float *k = job.k(), *v = job.v(), *mask = job.mask();
  const size_t rows = job.count, width = places.values * kWide, parts = a.parts;
  const size_t query_chunk = places.rows * kChunk, right_chunk = parts * kChunk * kWide;
  const size_t value_panel = kMostChunks * right_chunk;
  constexpr WeighRow kWeighRows[2][2] = {
      {weigh_parts_row<false, false>, weigh_parts_row<false, true>},
      {weigh_parts_row<true, false>, weigh_parts_row<true, true>}};
  const WeighRow weigh_row_of =
      a.softcap == 0.0f && a.scale > 0.0f ? kWeighRows[parts == 2][mask != nullptr] : nullptr;
  const auto tile = parts == 2 ? kernels.split : kernels.bf16;
  const auto low_of = [&](uint32_t* high, size_t part) {
    return parts == 2 ? high + part : nullptr;
  };

  for (size_t c = 0; c < places.depth; ++c) {
    steps[c] = static_cast<ptrdiff_t>(c * query_chunk);
    const float* from = job.q() + c * kWide;
    const size_t count = std::min(kWide, a.depth - c * kWide);
    uint32_t* to = q + c * query_chunk;
    split_pixels(from, count > kChunk ? from + kChunk : nullptr, rows, a.q_strides.row, count, to,
                 low_of(to, places.depth * query_chunk));
  }
  for (size_t c = 0; c < kMostChunks; ++c)
    weight_steps[c] = static_cast<ptrdiff_t>(c * kTileWeights);
  std::fill_n(maxima, rows, -HUGE_VALF);
  std::fill_n(totals, rows, 0.0f);
  std::memset(out, 0, rows * width * sizeof(float));

  const size_t visible = job.visible();
  for (size_t key = 0; key < visible; key += kKeyBlock) {
    const size_t count = std::min(kKeyBlock, visible - key);
    for (size_t p = 0; p * kWide < count; ++p) {
      const size_t columns = std::min(kWide, count - p * kWide);
      alignas(64) uint32_t turned[2][kWide * kChunk];
      if (columns < kWide) std::memset(turned, 0, sizeof(turned));
      for (size_t c = 0; c < places.depth; ++c) {
        const float* from = k + (key + p * kWide) * a.k_strides.row + c * kWide;
        const size_t used = std::min(kWide, a.depth - c * kWide);
        split_pixels(from, used > kChunk ? from + kChunk : nullptr, columns, a.k_strides.row, used,
                     turned[0], parts == 2 ? turned[1] : nullptr);
        uint32_t* to = keys + (p * places.depth + c) * right_chunk;
        for (size_t part = 0; part < parts; ++part)
          transpose_block(kWide, kChunk, reinterpret_cast<const float*>(turned[part]), kChunk,
                          reinterpret_cast<float*>(to + part * kChunk * kWide), kWide);
      }
    }
    for (size_t column = 0; column < width; column += kWide) {
      uint32_t* panel = values + column / kWide * value_panel;
      split_row_pairs(v + key * a.v_strides.row + column, a.v_strides.row, count,
                      a.value_depth - column, kWide, right_chunk, panel,
                      low_of(panel, kChunk * kWide));
    }
    const size_t tiles = (rows + kernels.rows - 1) / kernels.rows;
    const auto height_of = [&](size_t t) {
      return std::min(kernels.rows, rows - t * kernels.rows);
    };
    // Of keys that the last query of a tile sees.
    const auto panels_of = [&](size_t t) {
      return (job.seen(t * kernels.rows + height_of(t) - 1, key, count) + kWide - 1) / kWide;
    };
    const auto scores_of = [&](size_t t) { return scores + t % 2 * kMostChunks * kScorePanel; };
    const auto sums_of = [&](size_t t) { return sums + t % 2 * places.values * kTileScores; };
    float factors[2][kMaxUnitRows];

    const auto score = [&](size_t t) {
      for (size_t p = 0; p < panels_of(t); ++p)
        tile({.a = q + t * kernels.rows * kChunk,
              .steps = steps,
              .a_low = static_cast<ptrdiff_t>(places.depth * query_chunk),
              .b = keys + p * places.depth * right_chunk,
              .units = places.depth * parts * kChunk,
              .rows = height_of(t),
              .width = kWide,
              .sums = scores_of(t) + p * kScorePanel});
    };
    const auto weigh = [&](size_t t) {
      const size_t panels = panels_of(t);
      for (size_t r = 0; r < height_of(t); ++r) {
        const size_t row = t * kernels.rows + r, seen = job.seen(row, key, count);
        float* at = scores_of(t) + r * kWide;
        // The product below runs over whole panels.
        for (size_t c = (seen + kChunk - 1) / kChunk; c < 2 * panels; ++c)
          std::fill_n(at + c / 2 * kScorePanel + c % 2 * kChunk, kChunk, 0.0f);
        const float* masked = mask ? mask + row * a.mask_strides.row + key : nullptr;
        factors[t % 2][r] = seen == 0 ? 1.0f
                            : weigh_row_of
                                ? weigh_row_of(at, seen, a.scale, masked, maxima[row], totals[row])
                                : weigh_row<2>(at, kScorePanel, seen, a.scale, a.softcap, masked,
                                               maxima[row], totals[row]);
      }
      for (size_t p = 0; p < panels; ++p) {
        const float* from = scores_of(t) + p * kScorePanel;
        uint32_t* to = weights + p * kTileWeights;
        split_pixels(from, from + kChunk, height_of(t), kWide, kWide, to,
                     low_of(to, kMostChunks * kTileWeights));
      }
    };
    const auto multiply = [&](size_t t) {
      for (size_t panel = 0; panel < places.values; ++panel)
        tile({.a = weights,
              .steps = weight_steps,
              .a_low = static_cast<ptrdiff_t>(kMostChunks * kTileWeights),
              .b = values + panel * value_panel,
              .units = panels_of(t) * parts * kChunk,
              .rows = height_of(t),
              .width = kWide,
              .sums = sums_of(t) + panel * kTileScores});
    };
    const auto add = [&](size_t t) {
      for (size_t panel = 0; panel < places.values; ++panel)
        for (size_t r = 0; r < height_of(t); ++r)
          add_row(out + (t * kernels.rows + r) * width + panel * kWide, factors[t % 2][r],
                  sums_of(t) + panel * kTileScores + r * kWide);
    };
    // Tiles of a causal block that see none of these keys are the first ones.
    size_t t = 0;
    while (t < tiles && panels_of(t) == 0) ++t;
    const size_t begin = t;
    if (t < tiles) score(t);
    for (; t < tiles; ++t) {
      if (t + 1 < tiles) score(t + 1);
      weigh(t);
      multiply(t);
      if (t > begin) add(t - 1);
    }
    if (begin < tiles) add(tiles - 1);
  }
  float* to = job.out();
  for (size_t r = 0; r < rows; ++r) {
    scale_row(out + r * width, width, 1.0f / totals[r]);
    std::memcpy(to + r * a.out_strides.row, out + r * width, a.value_depth * sizeof(float));
  }
}

const TurnedKernels* get_turned_kernels([[maybe_unused]] TurnedForm form) {
#if HWY_TARGET == HWY_AVX3
  return turned_kernels(form);
#else
  return nullptr;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(attend_parts);
HWY_EXPORT(get_turned_kernels);
namespace {
const TurnedKernels* turned(const Attention& a) {
  if (a.softcap != 0.0f) return nullptr;
  return HWY_DYNAMIC_DISPATCH(get_turned_kernels)(turned_form(a));
}
}  // namespace
bool has_short_attention() {
  return HWY_DYNAMIC_DISPATCH(get_turned_kernels)(TurnedForm::shorts) != nullptr;
}
bool is_narrow(const Attention& a) { return a.parts != 0 || (a.shorts && turned(a) != nullptr); }
size_t narrow_attention_floats(const Attention& a) {
  return turned(a) ? turned_attention_floats(a) : NarrowScratch(a).total;
}
void attend_narrow(const AttentionJob& job) {
  const UnitKernels kernels = unit_kernels();
  if (kernels.begin) kernels.begin();
  if (const TurnedKernels* found = turned(*job.a))
    attend_turned(job, kernels, *found);
  else
    HWY_DYNAMIC_DISPATCH(attend_parts)(job, kernels);
  if (kernels.end) kernels.end();
}
}  // namespace hologram::backends::dense
#endif
