#include "backends/cpu/dense/attention_turned.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/attention_job.h"
#include "backends/cpu/dense/short_values.h"
#include "backends/cpu/dense/transpose.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

constexpr size_t kWide = 2 * kChunk;  // values of a chunk of units
constexpr size_t kBlockChunks = kKeyBlock / kWide;
constexpr size_t kPanelUnits = kChunk * kPanelQueries;
static_assert(kPanelQueries == kWide && kMaxUnitRows == kWide);
static_assert(kGroupKeys == kShortRun && kGroupKeys == 2 * kShortUnits);

// What one block of queries works in. Left sides (keys, values turned) are [part][chunk][row][16]
// units, right sides (queries turned, weights) panels of [chunk][part][16][32]. There are scores
// and weights of two panels: see `Steps`.
struct TurnedScratch {
  size_t parts;                                                            // of an operand
  size_t panels;                                                           // of queries
  size_t depth;                                                            // chunks of a query
  size_t value_rows;                                                       // of values turned
  size_t q, steps, keys, values, scores, weights, out, panel, mask, sums;  // offsets in floats
  size_t query_units, key_units, value_units, scales;                      // of shorts
  size_t total;
  explicit TurnedScratch(const Attention& a)
      : parts(a.shorts ? 1 : a.parts),
        panels((query_block(a) + kPanelQueries - 1) / kPanelQueries),
        depth((a.depth + kWide - 1) / kWide),
        value_rows(align_up(a.value_depth, kMaxUnitRows)) {
    AttentionLayout layout;
    q = layout.take(panels * depth * parts * kPanelUnits);
    steps = layout.take((depth + kBlockChunks) * (sizeof(ptrdiff_t) / sizeof(float)));
    keys = layout.take((parts * depth * kKeyBlock + kUnitRowsBeyond) * kChunk);
    values = layout.take((parts * kBlockChunks * value_rows + kUnitRowsBeyond) * kChunk);
    scores = layout.take(2 * kKeyBlock * kPanelQueries);
    weights = layout.take(2 * kBlockChunks * parts * kPanelUnits);
    out = layout.take(panels * value_rows * kPanelQueries);
    panel = layout.take(panels * sizeof(TurnedPanel) / sizeof(float));
    mask = layout.take(a.mask && a.mask_strides.row != 0 ? kKeyBlock * kPanelQueries : 0);
    sums = layout.take(kMaxUnitRows * kPanelQueries);
    query_units = layout.take(a.shorts ? panels * kPanelQueries : 0);
    key_units = layout.take(a.shorts ? kKeyBlock : 0);
    value_units = layout.take(a.shorts ? value_rows : 0);
    scales = layout.take(a.shorts ? 2 * kKeyBlock / kGroupKeys * kPanelQueries : 0);
    total = layout.total();
  }
};

class TurnedJob {
 public:
  TurnedJob(const AttentionJob& job, const UnitKernels& units, const TurnedKernels& kernels)
      : job_(job), a_(*job.a), units_(units), kernels_(kernels), places_(a_) {
    for (size_t c = 0; c < places_.depth; ++c)
      steps()[c] = static_cast<ptrdiff_t>(c * kKeyBlock * kChunk);
    for (size_t c = 0; c < kBlockChunks; ++c)
      value_steps()[c] = static_cast<ptrdiff_t>(c * places_.value_rows * kChunk);
  }

  void run() {
    pack_queries();
    for (size_t p = 0; p * kPanelQueries < job_.count; ++p) panel(p).begun = false;
    // Scores of the next panel, weights of this one and products of the last at a time.
    Step last{}, now{};
    for (Step next = first(); now.keys != 0 || next.keys != 0 || last.keys != 0;) {
      advance(next, now, last);
      last = now;
      now = next;
      next = after(next);
    }
    finish();
  }

 private:
  // A panel of queries and a block of keys, of which the panel's last query sees `keys`.
  struct Step {
    size_t number = 0, key = 0, panel = 0, keys = 0;
    size_t padded() const { return align_up(keys, kWide); }
  };
  float* at(size_t place) const { return job_.scratch + place; }
  uint32_t* units_at(size_t place) const { return reinterpret_cast<uint32_t*>(at(place)); }
  ptrdiff_t* steps() const { return reinterpret_cast<ptrdiff_t*>(at(places_.steps)); }
  ptrdiff_t* value_steps() const { return steps() + places_.depth; }
  TurnedPanel& panel(size_t p) const {
    return reinterpret_cast<TurnedPanel*>(at(places_.panel))[p];
  }
  float* out(size_t p) const { return at(places_.out) + p * places_.value_rows * kPanelQueries; }
  size_t queries(size_t p) const { return std::min(kPanelQueries, job_.count - p * kPanelQueries); }

  // Panels that see none of a block of keys are left out.
  Step seen_from(Step s) const {
    const size_t visible = job_.visible(), panels = (job_.count + kWide - 1) / kWide;
    for (; s.key < visible; s.key += kKeyBlock, s.panel = 0)
      for (; s.panel < panels; ++s.panel) {
        s.keys = job_.seen(s.panel * kPanelQueries + queries(s.panel) - 1, s.key,
                           std::min(kKeyBlock, visible - s.key));
        if (s.keys != 0) return s;
      }
    return {};
  }
  Step first() const { return seen_from({}); }
  Step after(const Step& s) const {
    if (s.keys == 0) return {};
    return seen_from({s.number + 1, s.key, s.panel + 1, 0});
  }

  void pack_short_queries() const {
    alignas(64) uint32_t rows[kPanelUnits];
    for (size_t p = 0; p * kPanelQueries < job_.count; ++p) {
      const size_t count = queries(p);
      float* const units = at(places_.query_units) + p * kPanelQueries;
      float factors[kPanelQueries];
      ShortPixels q{.from = job_.q() + p * kPanelQueries * a_.q_strides.row,
                    .block = kShortRun,
                    .step = a_.q_strides.row,
                    .pixels = count,
                    .count = a_.depth};
      shorts_.units(q, units);
      std::fill(units + count, units + kPanelQueries, 0.0f);
      for (size_t r = 0; r < count; ++r) {
        const ShortScale own(units[r]);
        factors[r] = own.factor;
        units[r] = own.back * a_.scale * kernels_.unit;
      }
      for (size_t c = 0; c < places_.depth; ++c, q.from += kWide, q.count -= kWide) {
        std::memset(rows, 0, sizeof(rows));
        write_shorts(q, factors, rows);
        transpose_block(kPanelQueries, kChunk, reinterpret_cast<const float*>(rows), kChunk,
                        at(places_.q) + (p * places_.depth + c) * kPanelUnits, kPanelQueries);
      }
    }
  }
  // A chunk of each row.
  void write_shorts(ShortPixels rows, const float* factors, uint32_t* to) const {
    rows.count = std::min(rows.count, kWide);
    shorts_.runs({.values = rows,
                  .runs = 2,
                  .factors = factors,
                  .factor_step = 1,
                  .to = reinterpret_cast<int16_t*>(to)});
  }

  void pack_short_keys(size_t key, size_t count) const {
    float* const units = at(places_.key_units);
    float factors[kKeyBlock];
    ShortPixels k{.from = job_.k() + key * a_.k_strides.row,
                  .block = kShortRun,
                  .step = a_.k_strides.row,
                  .pixels = count,
                  .count = a_.depth};
    shorts_.units(k, units);
    for (size_t r = 0; r < count; ++r) {
      const ShortScale own(units[r]);
      factors[r] = own.factor;
      units[r] = own.back;
    }
    for (size_t c = 0; c < places_.depth; ++c, k.from += kWide, k.count -= kWide)
      write_shorts(k, factors, units_at(places_.keys) + steps()[c]);
  }

  void pack_short_values(size_t key, size_t count) const {
    alignas(64) uint32_t pairs[kChunk * kChunk];
    const float* const from = job_.v() + key * a_.v_strides.row;
    const size_t stride = a_.v_strides.row;
    for (size_t row = 0; row < places_.value_rows; row += kChunk) {
      float* const units = at(places_.value_units) + row;
      const size_t columns = row < a_.value_depth ? std::min(kChunk, a_.value_depth - row) : 0;
      kernels_.value_units(from + row, stride, count, columns, units);
      for (size_t j = 0; j < count; j += kWide) {
        kernels_.value_pairs(from + j * stride + row, stride, std::min(kWide, count - j), columns,
                             units, pairs);
        transpose_block(kChunk, kChunk, reinterpret_cast<const float*>(pairs), kChunk,
                        reinterpret_cast<float*>(units_at(places_.values) +
                                                 value_steps()[j / kWide] + row * kChunk),
                        kChunk);
      }
    }
  }

  void pack_queries() const {
    if (a_.shorts) return pack_short_queries();
    alignas(64) float scaled[kPanelQueries * kWide];
    alignas(64) uint32_t turned[2][kPanelUnits];
    for (size_t p = 0; p * kPanelQueries < job_.count; ++p)
      for (size_t c = 0; c < places_.depth; ++c) {
        kernels_.scale_queries(job_.q() + p * kPanelQueries * a_.q_strides.row + c * kWide,
                               a_.q_strides.row, queries(p), std::min(kWide, a_.depth - c * kWide),
                               a_.scale * kernels_.unit, scaled);
        split_pixels(scaled, scaled + kChunk, kPanelQueries, kWide, kWide, turned[0],
                     a_.parts == 2 ? turned[1] : nullptr);
        uint32_t* to = units_at(places_.q) + (p * places_.depth + c) * a_.parts * kPanelUnits;
        for (size_t part = 0; part < a_.parts; ++part)
          transpose_block(kPanelQueries, kChunk, reinterpret_cast<const float*>(turned[part]),
                          kChunk, reinterpret_cast<float*>(to + part * kPanelUnits), kPanelQueries);
      }
  }

  void pack_keys(size_t key, size_t count) const {
    if (a_.shorts) return pack_short_keys(key, count);
    for (size_t c = 0; c < places_.depth; ++c) {
      const float* from = job_.k() + key * a_.k_strides.row + c * kWide;
      const size_t used = std::min(kWide, a_.depth - c * kWide);
      uint32_t* to = units_at(places_.keys) + steps()[c];
      split_pixels(from, used > kChunk ? from + kChunk : nullptr, count, a_.k_strides.row, used, to,
                   a_.parts == 2 ? to + key_low() : nullptr);
    }
  }
  ptrdiff_t key_low() const { return static_cast<ptrdiff_t>(places_.depth * kKeyBlock * kChunk); }
  ptrdiff_t value_low() const {
    return static_cast<ptrdiff_t>(kBlockChunks * places_.value_rows * kChunk);
  }

  void pack_values(size_t key, size_t count) const {
    if (a_.shorts) return pack_short_values(key, count);
    alignas(64) uint32_t pairs[2][kPanelUnits];
    for (size_t row = 0; row < places_.value_rows; row += kWide)
      for (size_t j = 0; j < count; j += kWide) {
        split_row_pairs(job_.v() + (key + j) * a_.v_strides.row + row, a_.v_strides.row,
                        std::min(kWide, count - j), a_.value_depth - row, kWide, kPanelUnits,
                        pairs[0], a_.parts == 2 ? pairs[1] : nullptr);
        uint32_t* to = units_at(places_.values) + value_steps()[j / kWide] + row * kChunk;
        for (size_t part = 0; part < a_.parts; ++part)
          transpose_block(kChunk, kWide, reinterpret_cast<const float*>(pairs[part]), kWide,
                          reinterpret_cast<float*>(to + static_cast<ptrdiff_t>(part) * value_low()),
                          kChunk);
      }
  }

  // Whether kernels add to sums, and have something done meanwhile.
  bool adds() const { return units_.depth != 0 && !a_.shorts; }

  float* scores(const Step& s) const {
    return at(places_.scores) + s.number % 2 * kKeyBlock * kPanelQueries;
  }
  uint32_t* weights(const Step& s) const {
    return units_at(places_.weights) + s.number % 2 * kBlockChunks * places_.parts * kPanelUnits;
  }
  float* scales(const Step& s) const {
    return at(places_.scales) + s.number % 2 * (kKeyBlock / kGroupKeys) * kPanelQueries;
  }

  // Rows of a tile: those of AMX are written by 16 rows.
  size_t tile_rows(size_t rows) const {
    const size_t most = a_.shorts ? kShortRows : units_.rows;
    const size_t tiles = std::max<size_t>((rows + most - 1) / most, 1);
    return align_up((rows + tiles - 1) / tiles, most % kChunk == 0 ? kChunk : 1);
  }

  void hide_unseen(const Step& s) const {
    float* const to = scores(s);
    if (a_.mask) {
      const float* mask = job_.mask() + s.panel * kPanelQueries * a_.mask_strides.row + s.key;
      const bool turned = a_.mask_strides.row != 0;
      if (turned) {
        float* const rows = at(places_.mask);
        if (queries(s.panel) < kPanelQueries) std::fill_n(rows, s.keys * kPanelQueries, 0.0f);
        transpose_block(queries(s.panel), s.keys, mask, a_.mask_strides.row, rows, kPanelQueries);
        mask = rows;
      }
      kernels_.add_mask(mask, turned, s.keys, to);
    }
    if (a_.causal)
      kernels_.hide(static_cast<ptrdiff_t>(job_.first + s.panel * kPanelQueries + 1 - s.key) +
                        a_.causal_offset,
                    s.keys, to);
    std::fill(to + s.keys * kPanelQueries, to + s.padded() * kPanelQueries, -HUGE_VALF);
  }

  void advance(const Step& next, const Step& now, const Step& last) const {
    if (next.keys != 0 && (next.number == 0 || next.key != now.key))
      pack_keys(next.key, std::min(kKeyBlock, job_.visible() - next.key));
    alignas(64) float block_sums[kPanelQueries] = {};
    const TurnedBlock block{scores(now), now.padded(),      weights(now),
                            scales(now), &panel(now.panel), block_sums};
    if (now.keys != 0) {
      hide_unseen(now);
      if (!block.panel->begun) kernels_.begin(block);
    }
    // Vectors beside the products: as many groups of keys with each tile as is its part of all.
    const size_t score_units = places_.parts * places_.depth * kChunk;
    const size_t sum_units = places_.parts * last.padded() / 2;
    const size_t all =
        (next.keys * score_units + (last.keys != 0 ? places_.value_rows : 0) * sum_units);
    size_t asked = 0, weighed = 0;
    const auto weigh_until = [&](size_t key) {
      for (; weighed < key; weighed += kGroupKeys) kernels_.weigh(block, weighed);
    };
    const auto beside = [&] { weigh_until(asked * (block.keys / kGroupKeys) / all * kGroupKeys); };
    const FunctionRef<void()> meanwhile(beside);
    const auto tile = a_.shorts ? units_.shorts : a_.parts == 2 ? units_.split : units_.bf16;
    const auto run = [&](UnitTile t) {
      asked += t.rows * t.units;
      if (adds()) t.meanwhile = &meanwhile;
      tile(t);
      if (!adds()) beside();
    };
    const size_t key_rows = tile_rows(next.keys);
    for (size_t key = 0; key < next.keys; key += key_rows) {
      const size_t rows = std::min(key_rows, next.keys - key);
      float* const sums = scores(next) + key * kPanelQueries;
      run({.a = units_at(places_.keys) + key * kChunk,
           .steps = steps(),
           .a_low = key_low(),
           .b = units_at(places_.q) + next.panel * places_.depth * places_.parts * kPanelUnits,
           .units = score_units,
           .rows = rows,
           .width = kPanelQueries,
           .sums = sums});
      if (a_.shorts)
        shorts_.scale(sums, rows, kPanelQueries, at(places_.key_units) + key, 1,
                      at(places_.query_units) + next.panel * kPanelQueries);
    }
    if (last.keys != 0) multiply(last, sum_units, run);
    weigh_until(block.keys);
    if (now.keys != 0) kernels_.settle(block, out(now.panel), places_.value_rows);
  }

  template <typename Run>
  void multiply(const Step& s, size_t units, const Run& run) const {
    if (packed_values_ != s.key + 1) {
      pack_values(s.key, std::min(kKeyBlock, job_.visible() - s.key));
      packed_values_ = s.key + 1;
    }
    const bool first = s.key == 0;
    const bool beside = a_.shorts || (!first && !adds());
    const size_t rows = tile_rows(places_.value_rows);
    for (size_t row = 0; row < places_.value_rows; row += rows) {
      const size_t height = std::min(rows, places_.value_rows - row);
      float* const to = out(s.panel) + row * kPanelQueries;
      run({.a = units_at(places_.values) + row * kChunk,
           .steps = value_steps(),
           .a_low = value_low(),
           .b = weights(s),
           .units = units,
           .rows = height,
           .width = kPanelQueries,
           .sums = beside ? at(places_.sums) : to,
           .run_scales = a_.shorts ? scales(s) : nullptr,
           .add = !first});
      if (a_.shorts) {
        if (first) std::fill_n(to, height * kPanelQueries, 0.0f);
        kernels_.add_scaled(at(places_.sums), at(places_.value_units) + row, height, to);
      } else if (beside) {
        kernels_.add(at(places_.sums), height, to);
      }
    }
  }

  void finish() const {
    for (size_t p = 0; p * kPanelQueries < job_.count; ++p) {
      float* to = job_.out() + p * kPanelQueries * a_.out_strides.row;
      if (!panel(p).begun) {  // no key
        for (size_t r = 0; r < queries(p); ++r)
          std::fill_n(to + r * a_.out_strides.row, a_.value_depth, NAN);
        continue;
      }
      kernels_.divide(panel(p), a_.value_depth, out(p));
      transpose_block(a_.value_depth, queries(p), out(p), kPanelQueries, to, a_.out_strides.row);
    }
  }

  const AttentionJob& job_;
  const Attention& a_;
  const UnitKernels& units_;
  const TurnedKernels& kernels_;
  const TurnedScratch places_;
  const ShortFunctions shorts_ = short_functions();
  mutable size_t packed_values_ = 0;
};

}  // namespace

size_t turned_attention_floats(const Attention& a) { return TurnedScratch(a).total; }

void attend_turned(const AttentionJob& job, const UnitKernels& units,
                   const TurnedKernels& kernels) {
  TurnedJob(job, units, kernels).run();
}

}  // namespace hologram::backends::dense
