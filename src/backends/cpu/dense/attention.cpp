#include "backends/cpu/dense/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/attention-inl.h"
#include "backends/cpu/dense/attention_job.h"
#include "backends/cpu/dense/ordered.h"
#include "backends/cpu/dense/row_tiles.h"
#include "backends/cpu/dense/transpose.h"

#ifndef HOLOGRAM_DENSE_ATTENTION_ONCE_
#define HOLOGRAM_DENSE_ATTENTION_ONCE_
namespace hologram::backends::dense {

// What one block of queries works in. Matrices that become the left side of a product have the form
// of Tile: [chunk of 16][row][16].
struct AttentionScratch {
  size_t q, keys, values, scores, out, row;  // offsets in floats
  size_t total;
  explicit AttentionScratch(const Attention& a) {
    const size_t most = query_block(a), block = key_block(a);
    AttentionLayout layout;
    q = layout.take(align_up(a.depth, kChunk) * most);
    keys = layout.take(a.depth * block);  // panels of 32 keys, depth-major
    values = layout.take(a.value_depth % kChunk ? align_up(a.value_depth, kChunk) * block : 0);
    scores = layout.take(block * most);
    out = layout.take(align_up(a.value_depth, kChunk) * most);  // row-major
    row = layout.take(2 * most);                                // maximum, sum
    total = layout.total();
  }
};
}  // namespace hologram::backends::dense
#endif

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

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
  const float *from = job.q(), *k = job.k(), *v = job.v(), *mask = job.mask();

  const float scale = a.ordered ? 1.0f : a.scale;
  for (size_t i = 0; i < a.depth; i += kChunk)
    for (size_t r = 0; r < rows; ++r)
      for (size_t j = i; j < std::min(a.depth, i + kChunk); ++j)
        q[i * rows + r * kChunk + j - i] = from[r * a.q_strides.row + j] * scale;
  std::fill_n(maxima, rows, -HUGE_VALF);
  std::fill_n(sums, rows, 0.0f);
  std::memset(out, 0, rows * width * sizeof(float));

  const RowTiles tiles(rows, kernel.rows);
  static constexpr ptrdiff_t kNoOffset = 0;
  Epilogue plain, add;
  add.residual = out;
  const size_t visible = job.visible();
  for (size_t key = 0; key < visible; key += key_block(a)) {
    const size_t count = std::min(key_block(a), visible - key);
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
      const size_t seen = job.seen(r, key, count);
      float* row = scores + r * kChunk;
      // The product below runs over whole chunks of the block.
      for (size_t c = (seen + kChunk - 1) / kChunk; c < key_chunks; ++c)
        std::fill_n(row + c * rows * kChunk, kChunk, 0.0f);
      if (seen == 0) continue;
      const float* row_mask = mask ? mask + r * a.mask_strides.row + key : nullptr;
      if (a.ordered) {
        weigh_row_ordered(row, rows * kChunk, seen, a.scale, row_mask);
        continue;
      }
      const float shrink =
          weigh_row<1>(row, rows * kChunk, seen, 1.0f, a.softcap, row_mask, maxima[r], sums[r]);
      if (shrink != 1.0f) scale_row(out + r * width, width, shrink);
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
        if (a.ordered) tile.part = ordered_part(a.value_depth, count) / kChunk;
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
  float* to = job.out();
  for (size_t r = 0; r < rows; ++r) {
    if (!a.ordered || job.seen(r, 0, a.keys) == 0)
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
size_t slot_floats(const Attention& a) {
  return is_narrow(a) ? narrow_attention_floats(a) : AttentionScratch(a).total;
}
}  // namespace

size_t attention_scratch_bytes(const Attention& a) {
  return std::min(job_count(a), kMostSlots) * slot_floats(a) * sizeof(float);
}

void attention(const Attention& a, std::byte* scratch, ThreadPool& pool) {
  const size_t jobs = job_count(a), slots = std::min(jobs, kMostSlots), blocks = query_blocks(a);
  if (jobs == 0 || a.value_depth == 0) return;
  const size_t floats = slot_floats(a);
  const auto run = HWY_DYNAMIC_DISPATCH(attend);
  const TileKernel kernel = tile_kernel();
  const RowTiles queries(a.queries, query_block(a));
  const bool narrow = is_narrow(a);
  const auto body = [&](size_t begin, size_t end) {
    for (size_t slot = begin; slot < end; ++slot) {
      for (size_t i = jobs * slot / slots; i < jobs * (slot + 1) / slots; ++i) {
        const size_t block = i % blocks;
        const AttentionJob job{&a,
                               i / blocks / a.heads,
                               i / blocks % a.heads,
                               queries.begin(block),
                               queries.height(block),
                               reinterpret_cast<float*>(scratch) + slot * floats};
        if (narrow)
          attend_narrow(job);
        else
          run(job, kernel);
      }
    }
  };
  const size_t work = a.batch * a.heads * a.queries * a.keys * (a.depth + a.value_depth);
  pool.parallel_for(slots, 1, body, Schedule::dynamic, work < 131072 ? 1 : 0);
}
}  // namespace hologram::backends::dense
#endif
