#include "backends/cpu/dense/recurrent.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/dense/recurrent.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/math-inl.h"
#include "backends/cpu/dense/tile.h"
#include "support/aligned.h"

HWY_BEFORE_NAMESPACE();
#include "backends/cpu/dense/oldest_level-inl.h"
namespace hologram::backends::dense {
namespace HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// Every row of hidden values is padded to whole vectors of the widest level in scratch, so a cell
// needs no tail.
HWY_INLINE V clipped(V v, float clip) { return clip == 0.0f ? v : clamp(D(), v, -clip, clip); }

// Gates i o f c, each `padded` long; h and c are rewritten.
void lstm_cell(const float* gates, size_t padded, const float* peephole, float clip, float* h,
               float* c) {
  const D d;
  for (size_t j = 0; j < padded; j += kLanes) {
    V i = hn::Load(d, gates + j), o = hn::Load(d, gates + padded + j);
    V f = hn::Load(d, gates + 2 * padded + j), g = hn::Load(d, gates + 3 * padded + j);
    const V before = hn::Load(d, c + j);
    if (peephole) {
      i = hn::MulAdd(hn::Load(d, peephole + j), before, i);
      f = hn::MulAdd(hn::Load(d, peephole + 2 * padded + j), before, f);
    }
    i = sigmoid(d, clipped(i, clip));
    f = sigmoid(d, clipped(f, clip));
    g = tanh(d, clipped(g, clip));
    const V cell = hn::MulAdd(f, before, hn::Mul(i, g));
    if (peephole) o = hn::MulAdd(hn::Load(d, peephole + padded + j), cell, o);
    o = sigmoid(d, clipped(o, clip));
    hn::Store(cell, d, c + j);
    hn::Store(hn::Mul(o, tanh(d, cell)), d, h + j);
  }
}

// First half of a GRU step: z and r become gates in place; when the reset comes before the product,
// `reset` = r * h.
void gru_gates(float* gates, size_t padded, float clip, const float* h, float* reset) {
  const D d;
  for (size_t j = 0; j < padded; j += kLanes) {
    const V r = sigmoid(d, clipped(hn::Load(d, gates + padded + j), clip));
    hn::Store(sigmoid(d, clipped(hn::Load(d, gates + j), clip)), d, gates + j);
    hn::Store(r, d, gates + padded + j);
    if (reset) hn::Store(hn::Mul(r, hn::Load(d, h + j)), d, reset + j);
  }
}

// Second half: h = (1 - z) * tanh(x + product) + z * h, the product times r when the reset is
// linear.
void gru_state(const float* gates, size_t padded, float clip, const float* product, bool linear,
               float* h) {
  const D d;
  for (size_t j = 0; j < padded; j += kLanes) {
    const V z = hn::Load(d, gates + j), x = hn::Load(d, gates + 2 * padded + j);
    V p = hn::Load(d, product + j);
    if (linear) p = hn::Mul(p, hn::Load(d, gates + padded + j));
    const V state = tanh(d, clipped(hn::Add(x, p), clip));
    // state + z * (h - state)
    hn::Store(hn::MulAdd(z, hn::Sub(hn::Load(d, h + j), state), state), d, h + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hologram::backends::dense
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hologram::backends::dense {
HWY_EXPORT(lstm_cell);
HWY_EXPORT(gru_gates);
HWY_EXPORT(gru_state);

namespace {

constexpr size_t kLstmGates = 4, kGruGates = 3;

// The same product by weights of 16 bits.
GemmBits by_words(const Gemm& g, const std::byte* words) {
  return {.m = g.m,
          .form = word_form(g.k, g.n),
          .a = g.a,
          .lda = g.lda,
          .packed_b = words,
          .c = g.c,
          .ldc = g.ldc,
          .epilogue = g.epilogue};
}

// Scratch, in floats.
struct Places {
  size_t hidden;                                                    // padded
  size_t inputs, gates, product, h, c, side, bias, peephole, gemm;  // offsets
  size_t bytes;

  Places(const Recurrent& r, size_t gate_count) : hidden(align_up(r.hidden, 16)) {
    size_t at = 0;
    const auto take = [&](size_t floats) {
      const size_t place = at;
      at += align_up(floats, 16);
      return place;
    };
    inputs = take(r.steps * r.batch * gate_count * r.hidden);
    product = take(r.batch * gate_count * r.hidden);
    gates = take(gate_count * hidden);
    h = take(r.batch * hidden);
    c = take(r.batch * hidden);
    side = take(r.batch * hidden);
    bias = take(2 * gate_count * r.hidden);
    peephole = take(3 * hidden);
    gemm = at;
    const Gemm first{.m = r.steps * r.batch, .n = gate_count * r.hidden, .k = r.input};
    const Gemm step{.m = r.batch, .n = gate_count * r.hidden, .k = r.hidden};
    // The scratch of a packed product does not depend on the pointer, only on its being there.
    static constexpr float kPacked = 0.0f;
    const auto scratch = [](Gemm g, const std::byte* words) {
      if (words) return gemm_bits_scratch_bytes(by_words(g, words));
      g.packed_b = &kPacked;
      return gemm_scratch_bytes(g);
    };
    bytes = at * sizeof(float) + std::max(scratch(first, r.words_w), scratch(step, r.words_r));
  }
};

// What LSTM and GRU share: the buffers, the product of all inputs, the walk over the steps.
class Walk {
 public:
  Walk(const Recurrent& r, size_t gate_count, std::byte* scratch, ThreadPool& pool)
      : r_(r), gate_count_(gate_count), places_(r, gate_count), pool_(pool) {
    base_ = reinterpret_cast<float*>(scratch);
    load_state(r.initial_h, h(0));
    load_state(r.initial_c, c(0));
    if (r.peephole) {
      float* to = base_ + places_.peephole;
      std::fill_n(to, 3 * places_.hidden, 0.0f);
      for (size_t g = 0; g < 3; ++g)
        std::copy_n(r.peephole + g * r.hidden, r.hidden, to + g * places_.hidden);
    }
    // Everything that is added to a gate whatever the state: both biases, except the recurrent one
    // of a GRU's candidate, which a linear reset multiplies.
    const size_t n = gate_count * r.hidden;
    float* bias = base_ + places_.bias;
    std::fill_n(bias, 2 * n, 0.0f);
    for (size_t i = 0; r.bias && i < n; ++i) {
      const bool apart = gate_count == kGruGates && i >= 2 * r.hidden;
      bias[i] = apart ? r.bias[i] : r.bias[i] + r.bias[n + i];
      bias[n + i] = apart ? r.bias[n + i] : 0.0f;
    }
    multiply_inputs();
  }

  size_t padded() const { return places_.hidden; }
  float* h(size_t sample) const { return base_ + places_.h + sample * places_.hidden; }
  float* c(size_t sample) const { return base_ + places_.c + sample * places_.hidden; }
  float* side(size_t sample) const { return base_ + places_.side + sample * places_.hidden; }
  float* gates() const { return base_ + places_.gates; }
  const float* peephole() const { return r_.peephole ? base_ + places_.peephole : nullptr; }
  float* product(size_t sample) const {
    return base_ + places_.product + sample * gate_count_ * r_.hidden;
  }
  const float* recurrent_bias() const { return base_ + places_.bias + gate_count_ * r_.hidden; }

  // product[gates first..past] = rows of `state` * R, for `count` samples from `sample` on. The
  // gates must be all of them, or start and end at panels (has_whole_panels).
  void multiply_state(const float* state, size_t sample, size_t count, size_t first, size_t past) {
    Gemm g{.m = count,
           .n = (past - first) * r_.hidden,
           .k = r_.hidden,
           .a = state,
           .lda = places_.hidden,
           .packed_b = r_.packed_r ? r_.packed_r + first * r_.hidden * r_.hidden : nullptr,
           .c = product(sample) + first * r_.hidden,
           .ldc = gate_count_ * r_.hidden};
    g.epilogue.bias = recurrent_bias() + first * r_.hidden;
    multiply(g, r_.words_r
                    ? r_.words_r + packed_b_bits_bytes(word_form(r_.hidden, first * r_.hidden))
                    : nullptr);
  }
  // True when the first two gates of a GRU end where a panel of the packed weights does.
  bool has_whole_panels() const { return 2 * r_.hidden % kPanelColumns == 0; }

  // gates() = inputs of (step, sample), plus the product for the first `with_product` gates, each
  // padded to whole vectors.
  void gather_gates(size_t step, size_t sample, size_t with_product) {
    const float* in = base_ + places_.inputs + (step * r_.batch + sample) * gate_count_ * r_.hidden;
    const float* from = product(sample);
    for (size_t g = 0; g < gate_count_; ++g) {
      float* to = gates() + g * padded();
      const float* x = in + g * r_.hidden;
      const float* p = from + g * r_.hidden;
      if (g < with_product)
        for (size_t j = 0; j < r_.hidden; ++j) to[j] = x[j] + p[j];
      else
        std::copy_n(x, r_.hidden, to);
      std::fill(to + r_.hidden, to + padded(), 0.0f);
    }
  }

  // Calls step(t) in order, then cell(t, sample) where the sample is still alive, and writes y.
  template <typename Step, typename Cell>
  void run(const Step& step, const Cell& cell) {
    for (size_t i = 0; i < r_.steps; ++i) {
      const size_t t = r_.reverse ? r_.steps - 1 - i : i;
      step();
      for (size_t s = 0; s < r_.batch; ++s) {
        const bool alive = !r_.lengths || static_cast<int64_t>(t) < r_.lengths[s];
        if (alive) cell(t, s);
        if (!r_.y) continue;
        float* to = r_.y + t * r_.y_step + s * r_.y_sample;
        if (alive)
          std::copy_n(h(s), r_.hidden, to);
        else
          std::fill_n(to, r_.hidden, 0.0f);
      }
    }
    for (size_t s = 0; s < r_.batch; ++s) {
      if (r_.last_h) std::copy_n(h(s), r_.hidden, r_.last_h + s * r_.hidden);
      if (r_.last_c) std::copy_n(c(s), r_.hidden, r_.last_c + s * r_.hidden);
    }
  }

 private:
  void load_state(const float* from, float* to) const {
    std::fill_n(to, r_.batch * places_.hidden, 0.0f);
    for (size_t s = 0; from && s < r_.batch; ++s)
      std::copy_n(from + s * r_.hidden, r_.hidden, to + s * places_.hidden);
  }

  void multiply(const Gemm& g, const std::byte* words) {
    auto* scratch = reinterpret_cast<std::byte*>(base_ + places_.gemm);
    if (words)
      gemm_bits(by_words(g, words), scratch, pool_);
    else
      gemm(g, scratch, pool_);
  }

  void multiply_inputs() {
    const size_t n = gate_count_ * r_.hidden;
    Gemm g{.n = n, .k = r_.input, .packed_b = r_.packed_w, .ldc = n};
    g.epilogue.bias = base_ + places_.bias;
    float* to = base_ + places_.inputs;
    // One product where (step, sample) is one regular row index; otherwise one a step.
    if (r_.batch == 1 || r_.x_step == r_.batch * r_.x_sample) {
      g.m = r_.steps * r_.batch;
      g.a = r_.x;
      g.lda = r_.batch == 1 ? r_.x_step : r_.x_sample;
      g.c = to;
      multiply(g, r_.words_w);
      return;
    }
    for (size_t t = 0; t < r_.steps; ++t) {
      g.m = r_.batch;
      g.a = r_.x + t * r_.x_step;
      g.lda = r_.x_sample;
      g.c = to + t * r_.batch * n;
      multiply(g, r_.words_w);
    }
  }

  const Recurrent& r_;
  size_t gate_count_;
  Places places_;
  ThreadPool& pool_;
  float* base_;
};

}  // namespace

size_t lstm_scratch_bytes(const Recurrent& r) { return Places(r, kLstmGates).bytes; }

void lstm(const Recurrent& r, std::byte* scratch, ThreadPool& pool) {
  if (r.batch == 0 || r.hidden == 0) return;
  Walk walk(r, kLstmGates, scratch, pool);
  const auto cell = HWY_DYNAMIC_DISPATCH(lstm_cell);
  walk.run([&] { walk.multiply_state(walk.h(0), 0, r.batch, 0, kLstmGates); },
           [&](size_t t, size_t s) {
             walk.gather_gates(t, s, kLstmGates);
             cell(walk.gates(), walk.padded(), walk.peephole(), r.clip, walk.h(s), walk.c(s));
           });
}

size_t gru_scratch_bytes(const Recurrent& r) { return Places(r, kGruGates).bytes; }

void gru(const Recurrent& r, std::byte* scratch, ThreadPool& pool) {
  if (r.batch == 0 || r.hidden == 0) return;
  Walk walk(r, kGruGates, scratch, pool);
  const auto gates = HWY_DYNAMIC_DISPATCH(gru_gates);
  const auto state = HWY_DYNAMIC_DISPATCH(gru_state);
  // The candidate's part of a sample's product, padded.
  const auto candidate = [&](size_t s) {
    std::copy_n(walk.product(s) + 2 * r.hidden, r.hidden, walk.side(s));
    std::fill(walk.side(s) + r.hidden, walk.side(s) + walk.padded(), 0.0f);
  };
  if (r.linear_before_reset) {
    walk.run([&] { walk.multiply_state(walk.h(0), 0, r.batch, 0, kGruGates); },
             [&](size_t t, size_t s) {
               walk.gather_gates(t, s, 2);
               gates(walk.gates(), walk.padded(), r.clip, walk.h(s), nullptr);
               candidate(s);
               state(walk.gates(), walk.padded(), r.clip, walk.side(s), true, walk.h(s));
             });
    return;
  }
  // Only what is used is computed where the packed weights can be cut between the gates.
  const bool split = walk.has_whole_panels();
  // The reset state goes through R once more, so a sample's step is finished before the next one's
  // product overwrites its row: the second product is of that sample alone.
  walk.run([&] { walk.multiply_state(walk.h(0), 0, r.batch, 0, split ? 2 : kGruGates); },
           [&](size_t t, size_t s) {
             walk.gather_gates(t, s, 2);
             gates(walk.gates(), walk.padded(), r.clip, walk.h(s), walk.side(s));
             walk.multiply_state(walk.side(s), s, 1, split ? 2 : 0, kGruGates);
             candidate(s);
             state(walk.gates(), walk.padded(), r.clip, walk.side(s), false, walk.h(s));
           });
}
}  // namespace hologram::backends::dense
#endif
