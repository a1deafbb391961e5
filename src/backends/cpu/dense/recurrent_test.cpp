#include "backends/cpu/dense/recurrent.h"

#include "backends/cpu/dense/gemm.h"
#include "backends/cpu/dense/gemm_bits.h"
#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Trial {
  size_t gates;
  Recurrent r;
  std::vector<float> x, w, rw, bias, h0, c0, peephole, y, last_h, last_c;
  std::vector<int32_t> lengths;
  AlignedBytes packed_w, packed_r;
  double tolerance = 1e-5;

  Trial(size_t gates, size_t steps, size_t batch, size_t input, size_t hidden) : gates(gates) {
    r.steps = steps;
    r.batch = batch;
    r.input = input;
    r.hidden = hidden;
    x = random_values(steps * batch * input, 1);
    w = random_values(gates * hidden * input, 2);
    rw = random_values(gates * hidden * hidden, 3);
    bias = random_values(2 * gates * hidden, 4);
    h0 = random_values(batch * hidden, 5);
    c0 = random_values(batch * hidden, 6);
    peephole = random_values(3 * hidden, 7);
    y.assign(steps * batch * hidden, NAN);
    last_h.assign(batch * hidden, NAN);
    last_c.assign(batch * hidden, NAN);
    packed_w = poisoned_scratch(packed_b_bytes(input, gates * hidden));
    packed_r = poisoned_scratch(packed_b_bytes(hidden, gates * hidden));
    pack_b(input, gates * hidden, w.data(), input, true, packed_w.as<float>().data(),
           ThreadPool::shared());
    pack_b(hidden, gates * hidden, rw.data(), hidden, true, packed_r.as<float>().data(),
           ThreadPool::shared());
    r.packed_w = packed_w.as<float>().data();
    r.packed_r = packed_r.as<float>().data();
    r.x = x.data();
    r.x_step = batch * input;
    r.x_sample = input;
    r.y = y.data();
    r.y_step = batch * hidden;
    r.y_sample = hidden;
    r.last_h = last_h.data();
    if (gates == 4) r.last_c = last_c.data();
  }
  // Rounded as 16 bits are, by a scale for each group of a column.
  static void round_words(std::vector<float>& weights, size_t k) {
    for (size_t column = 0; column < weights.size(); column += k)
      for (size_t first = column; first < column + k; first += kWordGroup) {
        const size_t past = std::min(first + kWordGroup, column + k);
        float largest = 0;
        for (size_t i = first; i < past; ++i) largest = std::max(largest, std::abs(weights[i]));
        const float scale = largest / 32767.0f;
        for (size_t i = first; i < past; ++i)
          weights[i] = std::nearbyint(weights[i] / scale) * scale;
      }
  }
  void use_words(bool of_inputs, bool of_states) {
    const auto pack = [&](std::vector<float>& weights, size_t k, AlignedBytes& packed) {
      round_words(weights, k);
      const BitsForm form = word_form(k, gates * r.hidden);
      packed = poisoned_scratch(packed_b_bits_bytes(form));
      pack_b_words(form, weights.data(), k, true, packed.data());
      return packed.data();
    };
    if (of_inputs) {
      r.words_w = pack(w, r.input, packed_w);
      r.packed_w = nullptr;
    }
    if (of_states) {
      r.words_r = pack(rw, r.hidden, packed_r);
      r.packed_r = nullptr;
    }
    tolerance = 5e-5;  // rows are integers of 20 bits
  }
  void batch_major() {  // [sample][step][...]
    r.x_step = r.input;
    r.x_sample = r.steps * r.input;
  }
  void use_all() {
    r.bias = bias.data();
    r.initial_h = h0.data();
    if (gates == 4) {
      r.initial_c = c0.data();
      r.peephole = peephole.data();
    }
    for (size_t s = 0; s < r.batch; ++s) lengths.push_back(int32_t(s % (r.steps + 1)));
    r.lengths = lengths.data();
    r.clip = 0.8f;
  }
  double clip(double v) const {
    return r.clip == 0 ? v : std::min(std::max(v, -double(r.clip)), double(r.clip));
  }

  void expect_right() {
    AlignedBytes scratch =
        poisoned_scratch(gates == 4 ? lstm_scratch_bytes(r) : gru_scratch_bytes(r));
    (gates == 4 ? lstm : gru)(r, scratch.data(), ThreadPool::shared());
    const size_t n = r.hidden;
    for (size_t s = 0; s < r.batch; ++s) {
      std::vector<double> h(n), c(n);
      for (size_t j = 0; j < n; ++j) {
        if (r.initial_h) h[j] = h0[s * n + j];
        if (r.initial_c) c[j] = c0[s * n + j];
      }
      for (size_t i = 0; i < r.steps; ++i) {
        const size_t t = r.reverse ? r.steps - 1 - i : i;
        const bool alive = !r.lengths || int32_t(t) < lengths[s];
        if (alive) step(s, t, h, c);
        for (size_t j = 0; j < n; ++j)
          ASSERT_NEAR(y[t * r.y_step + s * r.y_sample + j], alive ? h[j] : 0.0, tolerance)
              << "step " << t << " sample " << s << " unit " << j;
      }
      for (size_t j = 0; j < n; ++j) {
        ASSERT_NEAR(last_h[s * n + j], h[j], tolerance);
        if (gates == 4) {
          ASSERT_NEAR(last_c[s * n + j], c[j], tolerance);
        }
      }
    }
  }
  void step(size_t s, size_t t, std::vector<double>& h, std::vector<double>& c) const {
    const size_t n = r.hidden;
    const auto in = [&](size_t g) {
      double v = r.bias ? bias[g] : 0.0;
      for (size_t k = 0; k < r.input; ++k)
        v += double(w[g * r.input + k]) * x[t * r.x_step + s * r.x_sample + k];
      return v;
    };
    const auto back = [&](size_t g, const std::vector<double>& state) {
      double v = r.bias ? bias[gates * n + g] : 0.0;
      for (size_t k = 0; k < n; ++k) v += rw[g * n + k] * state[k];
      return v;
    };
    const std::vector<double> before = h;
    std::vector<double> reset(n);
    if (gates == 3)
      for (size_t j = 0; j < n; ++j)
        reset[j] = before[j] * sigmoid(clip(in(n + j) + back(n + j, before)));
    for (size_t j = 0; j < n; ++j) {
      if (gates == 4) {
        const double p = r.peephole ? 1.0 : 0.0;
        const double i = sigmoid(clip(in(j) + back(j, before) + p * peephole[j] * c[j]));
        const double f =
            sigmoid(clip(in(2 * n + j) + back(2 * n + j, before) + p * peephole[2 * n + j] * c[j]));
        const double g = std::tanh(clip(in(3 * n + j) + back(3 * n + j, before)));
        c[j] = f * c[j] + i * g;
        const double o =
            sigmoid(clip(in(n + j) + back(n + j, before) + p * peephole[n + j] * c[j]));
        h[j] = o * std::tanh(c[j]);
      } else {
        const double z = sigmoid(clip(in(j) + back(j, before)));
        const double rg = sigmoid(clip(in(n + j) + back(n + j, before)));
        const double candidate = r.linear_before_reset
                                     ? in(2 * n + j) + rg * back(2 * n + j, before)
                                     : in(2 * n + j) + back(2 * n + j, reset);
        h[j] = (1 - z) * std::tanh(clip(candidate)) + z * before[j];
      }
    }
  }
};

TEST(Recurrent, LstmAndGru) {
  for_each_level([] {
    for (size_t gates : {3, 4})
      for (size_t hidden : {1, 7, 16, 40})
        for (size_t batch : {1, 3})
          for (int kind = 0; kind < 16; ++kind) {
            Trial t(gates, 4, batch, 5, hidden);
            if (kind & 1) t.r.reverse = true;
            if (kind & 2) t.use_all();
            if (kind & 4) t.batch_major();
            if (kind & 8) t.r.linear_before_reset = true;
            t.expect_right();
            if (::testing::Test::HasFatalFailure()) return;
          }
  });
}

TEST(Recurrent, ByWeightsOf16Bits) {
  for_each_level([] {
    for (size_t gates : {3, 4})
      for (size_t hidden : {1, 7, 16, 40, 144})
        for (size_t batch : {1, 3})
          for (int kind = 0; kind < 8; ++kind) {
            Trial t(gates, 3, batch, 5, hidden);
            t.use_words(kind % 3 != 1, kind % 3 != 2);
            if (kind & 1) t.use_all();
            if (kind & 2) t.batch_major();
            if (kind & 4) t.r.linear_before_reset = true;
            t.expect_right();
            if (::testing::Test::HasFatalFailure()) return;
          }
  });
}

TEST(Recurrent, NoStepsKeepsTheState) {
  Trial t(4, 0, 2, 5, 8);
  t.use_all();
  t.r.lengths = nullptr;
  t.expect_right();
}

}  // namespace
}  // namespace hologram::backends::dense
