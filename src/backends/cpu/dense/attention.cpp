#include "backends/cpu/dense/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/math-inl.h"
#include "backends/cpu/dense/reduce-inl.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/tile.h"
#include "backends/cpu/dense/transpose.h"
#include "support/aligned.h"

#ifndef HOLOGRAM_DENSE_ATTENTION_ONCE_
#define HOLOGRAM_DENSE_ATTENTION_ONCE_
namespace hologram::backends::dense {

inline constexpr size_t kKeyBlock = 128;
// A block packs its keys once, so a large one is better, except that it skips fewer masked keys.
inline size_t query_block(const Attention& a) { return a.causal ? 64 : 128; }

// What one block of queries works in. Matrices that become the left side of a product have the form
// of Tile: [chunk of 16][row][16].
struct AttentionScratch {
  size_t q, keys, values, scores, out, row;  // offsets in floats
  size_t total;
  explicit AttentionScratch(const Attention& a) {
    const size_t most = query_block(a);
    size_t at = 0;
    const auto take = [&](size_t floats) {
      const size_t place = at;
      at += align_up(floats, kChunk);
      return place;
    };
    q = take(align_up(a.depth, kChunk) * most);
    keys = take(a.depth * kKeyBlock);  // panels of 32 keys, depth-major
    values = take(a.value_depth % kChunk ? align_up(a.value_depth, kChunk) * kKeyBlock : 0);
    scores = take(kKeyBlock * most);
    out = take(align_up(a.value_depth, kChunk) * most);  // row-major
    row = take(2 * most);                                // maximum, sum
    total = at;
  }
};

// A block of queries of one head of one sample.
struct AttentionJob {
  const Attention* a;
  size_t sample, head, first, count;
  float* scratch;
};
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// One row of a block of scores, whose chunks are `stride` floats apart: cap and mask, then
// exp(score - maximum). Lanes beyond `count` become 0. Returns by how much what was summed before
// has to be scaled.
float weigh_row(float* scores, size_t stride, size_t count, float softcap, const float* mask,
                float& maximum, float& sum) {
  const D d;
  const size_t padded = (count + kChunk - 1) / kChunk * kChunk;
  V peak = hn::Set(d, -HUGE_VALF);
  HWY_ALIGN float rest[kLanes];
  for (size_t j = 0; j < padded; j += kLanes) {
    float* at = scores + j / kChunk * stride + j % kChunk;
    V s = hn::Load(d, at);
    if (softcap != 0.0f) s = hn::Mul(hn::Set(d, softcap), tanh(d, hn::Div(s, hn::Set(d, softcap))));
    if (j + kLanes <= count) {
      if (mask) s = hn::Add(s, hn::LoadU(d, mask + j));
    } else {
      const size_t left = count > j ? count - j : 0;
      std::fill_n(rest, kLanes, -HUGE_VALF);
      std::fill_n(rest, left, 0.0f);
      if (mask) std::copy_n(mask + j, left, rest);
      s = hn::Add(s, hn::Load(d, rest));  // scores are finite beyond the last key
    }
    peak = hn::Max(peak, s);
    hn::Store(s, d, at);
  }
  // A NaN among the scores may be lost here, but not in the weights, which make the sum NaN.
  const float before = maximum;
  maximum = std::max(before, hn::GetLane(hn::MaxOfLanes(d, peak)));
  // While everything is masked there is nothing to subtract from.
  const float base = maximum == -HUGE_VALF ? 0.0f : maximum;
  const V bases = hn::Set(d, base), floor = hn::Set(d, -87.0f);
  V sums = hn::Zero(d);
  for (size_t j = 0; j < padded; j += kLanes) {
    float* at = scores + j / kChunk * stride + j % kChunk;
    const V x = hn::Sub(hn::Load(d, at), bases);
    // Below -87 the weight is 0; a NaN is not below and stays.
    const V e = hn::IfThenZeroElse(hn::Lt(x, floor), exp_in_range(d, hn::Max(floor, x)));
    sums = hn::Add(sums, e);
    hn::Store(e, d, at);
  }
  const float scale = before == base ? 1.0f : before == -HUGE_VALF ? 0.0f : std::exp(before - base);
  sum = sum * scale + combine_lanes<SumOf>(d, sums);
  return scale;
}

void scale_row(float* row, size_t count, float scale) {
  const D d;
  const V s = hn::Set(d, scale);
  for (size_t i = 0; i < count; i += kLanes)
    hn::Store(hn::Mul(hn::Load(d, row + i), s), d, row + i);
}

void attend(const AttentionJob& job, const TileKernel& kernel) {
  const Attention& a = *job.a;
  const AttentionScratch places(a);
  float* const q = job.scratch + places.q;
  float* const keys = job.scratch + places.keys;
  float* const packed_values = job.scratch + places.values;
  float* const scores = job.scratch + places.scores;
  float* const out = job.scratch + places.out;
  float* const maxima = job.scratch + places.row;
  float* const sums = maxima + query_block(a);
  const size_t rows = job.count, width = align_up(a.value_depth, kChunk);
  const size_t kv_head = job.head / (a.heads / a.kv_heads);
  const float* from = a.q + job.sample * a.q_strides.batch + job.head * a.q_strides.head +
                      job.first * a.q_strides.row;
  const float* k = a.k + job.sample * a.k_strides.batch + kv_head * a.k_strides.head;
  const float* v = a.v + job.sample * a.v_strides.batch + kv_head * a.v_strides.head;
  const float* mask = a.mask ? a.mask + job.sample * a.mask_strides.batch +
                                   job.head * a.mask_strides.head + job.first * a.mask_strides.row
                             : nullptr;

  for (size_t i = 0; i < a.depth; i += kChunk)
    for (size_t r = 0; r < rows; ++r)
      for (size_t j = i; j < std::min(a.depth, i + kChunk); ++j)
        q[i * rows + r * kChunk + j - i] = from[r * a.q_strides.row + j] * a.scale;
  std::fill_n(maxima, rows, -HUGE_VALF);
  std::fill_n(sums, rows, 0.0f);
  std::memset(out, 0, rows * width * sizeof(float));

  const RowTiles tiles(rows, kernel.rows);
  static constexpr ptrdiff_t kNoOffset = 0;
  Epilogue plain, add;
  add.residual = out;
  // Keys beyond the last one any query of the block sees are not touched.
  size_t visible = a.keys;
  if (a.causal) {
    const ptrdiff_t last = static_cast<ptrdiff_t>(job.first + rows) + a.causal_offset;
    visible = static_cast<size_t>(std::clamp<ptrdiff_t>(last, 0, static_cast<ptrdiff_t>(a.keys)));
  }
  for (size_t key = 0; key < visible; key += kKeyBlock) {
    const size_t count = std::min(kKeyBlock, visible - key);
    const size_t key_chunks = (count + kChunk - 1) / kChunk;
    for (size_t panel = 0; panel < count; panel += kPanelColumns) {
      const size_t columns = std::min(kPanelColumns, count - panel);
      float* packed = keys + panel * a.depth;
      transpose_block(columns, a.depth, k + (key + panel) * a.k_strides.row, a.k_strides.row,
                      packed, kPanelColumns);
      // What lies beside the last key must be finite: the scores there are replaced later.
      for (size_t i = 0; columns < kPanelColumns && i < a.depth; ++i)
        std::fill(packed + i * kPanelColumns + columns, packed + (i + 1) * kPanelColumns, 0.0f);
      for (size_t t = 0; t < tiles.tiles; ++t) {
        Tile tile;
        tile.a = q + tiles.begin(t) * kChunk;
        tile.a_row = kChunk;
        tile.a_chunk = static_cast<ptrdiff_t>(rows * kChunk);
        tile.taps = &kNoOffset;
        tile.chunks = (a.depth + kChunk - 1) / kChunk;
        tile.last = a.depth - (tile.chunks - 1) * kChunk;
        tile.b = packed;
        tile.rows = tiles.height(t);
        tile.columns = (columns + kChunk - 1) / kChunk * kChunk;
        tile.c = scores + (panel / kChunk * rows + tiles.begin(t)) * kChunk;
        tile.c_row = kChunk;
        tile.c_block = static_cast<ptrdiff_t>(rows * kChunk);
        tile.epilogue = &plain;
        kernel.run(tile);
      }
    }
    for (size_t r = 0; r < rows; ++r) {
      size_t seen = count;
      if (a.causal) {
        const ptrdiff_t last = static_cast<ptrdiff_t>(job.first + r) + a.causal_offset + 1;
        seen = static_cast<size_t>(std::clamp<ptrdiff_t>(last - static_cast<ptrdiff_t>(key), 0,
                                                         static_cast<ptrdiff_t>(count)));
      }
      float* row = scores + r * kChunk;
      // The product below runs over whole chunks of the block.
      for (size_t c = (seen + kChunk - 1) / kChunk; c < key_chunks; ++c)
        std::fill_n(row + c * rows * kChunk, kChunk, 0.0f);
      if (seen == 0) continue;
      const float scale =
          weigh_row(row, rows * kChunk, seen, a.softcap,
                    mask ? mask + r * a.mask_strides.row + key : nullptr, maxima[r], sums[r]);
      if (scale != 1.0f) scale_row(out + r * width, width, scale);
    }
    const float* values = v + key * a.v_strides.row;
    size_t value_stride = a.v_strides.row;
    if (a.value_depth % kChunk) {  // rows that end inside a vector are copied
      for (size_t j = 0; j < count; ++j)
        std::memcpy(packed_values + j * width, values + j * value_stride,
                    a.value_depth * sizeof(float));
      values = packed_values;
      value_stride = width;
    }
    for (size_t column = 0; column < width; column += kPanelColumns) {
      for (size_t t = 0; t < tiles.tiles; ++t) {
        Tile tile;
        tile.a = scores + tiles.begin(t) * kChunk;
        tile.a_row = kChunk;
        tile.a_chunk = static_cast<ptrdiff_t>(rows * kChunk);
        tile.taps = &kNoOffset;
        tile.chunks = key_chunks;
        tile.last = count - (key_chunks - 1) * kChunk;
        tile.b = values + column;
        tile.b_stride = value_stride;
        tile.rows = tiles.height(t);
        tile.columns = std::min(kPanelColumns, width - column);
        tile.c = out + tiles.begin(t) * width + column;
        tile.c_row = static_cast<ptrdiff_t>(width);
        tile.residual = tile.c;
        tile.residual_row = tile.c_row;
        tile.epilogue = &add;
        kernel.run(tile);
      }
    }
  }
  float* to = a.out + job.sample * a.out_strides.batch + job.head * a.out_strides.head +
              job.first * a.out_strides.row;
  for (size_t r = 0; r < rows; ++r) {
    scale_row(out + r * width, width, 1.0f / sums[r]);
    std::memcpy(to + r * a.out_strides.row, out + r * width, a.value_depth * sizeof(float));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(attend);

namespace {
// A part of the jobs runs in a slot of scratch.
constexpr size_t kMostSlots = 32;
size_t query_blocks(const Attention& a) { return RowTiles(a.queries, query_block(a)).tiles; }
size_t job_count(const Attention& a) { return a.batch * a.heads * query_blocks(a); }
}  // namespace

size_t attention_scratch_bytes(const Attention& a) {
  return std::min(job_count(a), kMostSlots) * AttentionScratch(a).total * sizeof(float);
}

void attention(const Attention& a, std::byte* scratch, ThreadPool& pool) {
  const size_t jobs = job_count(a), slots = std::min(jobs, kMostSlots), blocks = query_blocks(a);
  if (jobs == 0 || a.value_depth == 0) return;
  const size_t slot_floats = AttentionScratch(a).total;
  const auto run = HWY_DYNAMIC_DISPATCH(attend);
  const TileKernel kernel = tile_kernel();
  const RowTiles queries(a.queries, query_block(a));
  const auto body = [&](size_t begin, size_t end) {
    for (size_t slot = begin; slot < end; ++slot) {
      for (size_t job = jobs * slot / slots; job < jobs * (slot + 1) / slots; ++job) {
        const size_t block = job % blocks;
        run({&a, job / blocks / a.heads, job / blocks % a.heads, queries.begin(block),
             queries.height(block), reinterpret_cast<float*>(scratch) + slot * slot_floats},
            kernel);
      }
    }
  };
  const size_t work = a.batch * a.heads * a.queries * a.keys * (a.depth + a.value_depth);
  pool.parallel_for(slots, 1, body, Schedule::dynamic, work < 131072 ? 1 : 0);
}
}  // namespace hologram::backends::dense
#endif
