#include "backends/cpu/dense/attention.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

struct Trial {
  Attention a;
  std::vector<float> q, k, v, mask, out;

  // [batch][row][head][depth]: strided heads, as a projection leaves them.
  Trial(size_t batch, size_t heads, size_t kv_heads, size_t queries, size_t keys, size_t depth,
        size_t value_depth) {
    a.batch = batch;
    a.heads = heads;
    a.kv_heads = kv_heads;
    a.queries = queries;
    a.keys = keys;
    a.depth = depth;
    a.value_depth = value_depth;
    const auto strides = [](size_t rows, size_t head_count, size_t d) {
      return HeadStrides{rows * head_count * d, d, head_count * d};
    };
    a.q_strides = strides(queries, heads, depth);
    a.k_strides = strides(keys, kv_heads, depth);
    a.v_strides = strides(keys, kv_heads, value_depth);
    a.out_strides = strides(queries, heads, value_depth);
    a.scale = 1.0f / std::sqrt(float(depth));
    q = random_values(batch * queries * heads * depth, 1, -3.0f, 3.0f);
    k = random_values(batch * keys * kv_heads * depth, 2, -3.0f, 3.0f);
    v = random_values(batch * keys * kv_heads * value_depth, 3);
    out.assign(batch * queries * heads * value_depth, NAN);
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.out = out.data();
  }
  void add_mask() {
    mask = random_values(a.heads * a.queries * a.keys, 4, -4.0f, 2.0f);
    for (size_t i = 0; i < mask.size(); i += 3)
      if (i % a.keys != 0) mask[i] = -HUGE_VALF;
    a.mask = mask.data();
    a.mask_strides = {0, a.queries * a.keys, a.keys};
  }
  // Of so many bf16 parts, or of shorts.
  static constexpr size_t kShorts = 3;
  void use(size_t form) {
    a.shorts = form == kShorts;
    a.parts = a.shorts ? 0 : form;
  }
  void run(ThreadPool& pool) {
    AlignedBytes scratch = poisoned_scratch(attention_scratch_bytes(a));
    attention(a, scratch.data(), pool);
  }
  void expect_right() {
    run(ThreadPool::shared());
    for (size_t b = 0; b < a.batch; ++b)
      for (size_t h = 0; h < a.heads; ++h)
        for (size_t i = 0; i < a.queries; ++i) {
          const size_t kv = h / (a.heads / a.kv_heads);
          std::vector<double> s(a.keys);
          double peak = -HUGE_VAL, sum = 0;
          for (size_t j = 0; j < a.keys; ++j) {
            double dot = 0;
            for (size_t d = 0; d < a.depth; ++d)
              dot +=
                  double(
                      q[b * a.q_strides.batch + h * a.q_strides.head + i * a.q_strides.row + d]) *
                  k[b * a.k_strides.batch + kv * a.k_strides.head + j * a.k_strides.row + d];
            s[j] = dot * a.scale;
            if (a.softcap != 0) s[j] = a.softcap * std::tanh(s[j] / a.softcap);
            if (a.mask) s[j] += a.mask[h * a.mask_strides.head + i * a.mask_strides.row + j];
            if (a.causal && ptrdiff_t(j) > ptrdiff_t(i) + a.causal_offset) s[j] = -HUGE_VAL;
            peak = std::max(peak, s[j]);
          }
          for (double& x : s) sum += x = std::exp(x - peak);
          for (size_t d = 0; d < a.value_depth; ++d) {
            double right = 0;
            for (size_t j = 0; j < a.keys; ++j)
              right += s[j] / sum *
                       v[b * a.v_strides.batch + kv * a.v_strides.head + j * a.v_strides.row + d];
            const float got =
                out[b * a.out_strides.batch + h * a.out_strides.head + i * a.out_strides.row + d];
            if (std::isnan(right)) {
              ASSERT_TRUE(std::isnan(got)) << "query " << i;
            } else {
              ASSERT_NEAR(got, right,
                          a.shorts       ? 6e-4
                          : a.parts == 1 ? 0.05
                          : a.parts == 2 ? 5e-5
                                         : 4e-6)
                  << a.queries << " queries " << a.keys << " keys, head " << h << " query " << i;
            }
          }
        }
  }
};

TEST(Attention, Shapes) {
  for_each_level([] {
    for (size_t queries : {1, 5, 64, 70, 130})
      for (size_t keys : {1, 16, 33, 64, 65, 200})
        for (size_t depth : {8, 20, 64}) {
          Trial t(1, 2, 1, queries, keys, depth, depth == 8 ? 17 : depth == 20 ? 80 : 64);
          t.expect_right();
          t.a.ordered = true;
          t.expect_right();
          if (::testing::Test::HasFatalFailure()) return;
        }
  });
}

TEST(Attention, MaskCausalSoftcapAndGroups) {
  for_each_level([] {
    for (int kind = 0; kind < 16; ++kind)
      for (size_t keys : {40, 150}) {
        Trial t(2, 4, kind & 8 ? 2 : 4, 90, keys, 32, 32);
        if (kind & 1) t.add_mask();
        if (kind & 2) {
          t.a.causal = true;
          t.a.causal_offset = ptrdiff_t(keys) - 90;
        }
        if (kind & 4) t.a.softcap = 2.5f;
        t.expect_right();  // with 40 keys the first queries see none: NaN
        t.a.ordered = true;
        if (t.a.softcap == 0) t.expect_right();
        if (::testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Attention, MaskedFirstBlockAndNoKeys) {
  for_each_level([] {
    Trial t(1, 1, 1, 3, 100, 16, 16);
    t.add_mask();
    for (size_t i = 0; i < t.mask.size(); ++i)
      if (i % 100 < 70) t.mask[i] = -HUGE_VALF;
    t.expect_right();
    for (bool ordered : {false, true}) {
      Trial none(1, 1, 1, 2, 0, 16, 16);
      none.a.ordered = ordered;
      none.run(ThreadPool::shared());
      for (float x : none.out) EXPECT_TRUE(std::isnan(x));
    }
  });
}

// Operands as bf16 values: one, or two for nearly f32.
TEST(Attention, Parts) {
  for_each_level([] {
    for (size_t form : {size_t{1}, size_t{2}, Trial::kShorts})
      for (int kind = 0; kind < 32; ++kind)
        for (size_t keys : {1, 33, 150}) {
          const size_t depth = kind & 4 ? 20 : 64, queries = kind & 8 ? 130 : 37;
          Trial t(2, 4, kind & 8 ? 2 : 4, queries, keys, depth, kind & 4 ? 49 : 64);
          t.use(form);
          if (kind & 1) t.add_mask();
          if (kind & 2) {
            t.a.causal = true;
            t.a.causal_offset = ptrdiff_t(keys) - 30;
          }
          if (kind & 16) t.a.softcap = 2.5f;
          t.expect_right();
          if (::testing::Test::HasFatalFailure()) return;
        }
    Trial none(1, 1, 1, 2, 0, 16, 16);
    none.a.parts = 2;
    none.run(ThreadPool::shared());
    for (float x : none.out) EXPECT_TRUE(std::isnan(x));
  });
}

TEST(Attention, PartsOfWhatIsMaskedOrNotANumber) {
  for_each_level([] {
    for (size_t form : {size_t{1}, size_t{2}, Trial::kShorts}) {
      Trial t(1, 1, 1, 40, 200, 64, 64);
      t.use(form);
      t.add_mask();
      for (size_t i = 0; i < t.mask.size(); ++i)  // the whole first block, and all of a query
        if (i % 200 < 140 || i / 200 == 7) t.mask[i] = -HUGE_VALF;
      t.expect_right();
      for (bool masked : {false, true}) {
        Trial nan(1, 1, 1, 40, 200, 64, 64);
        nan.use(form);
        if (masked) nan.add_mask();
        nan.q[3 * 64] = NAN;
        nan.run(ThreadPool::shared());
        for (size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(nan.out[i * 64]), i == 3) << i;
      }
    }
  });
}

// Scores that rise or fall from block to block of keys, by more than weights have exponents too.
TEST(Attention, PartsOfScoresFarApart) {
  for_each_level([] {
    for (size_t form : {size_t{1}, size_t{2}, Trial::kShorts})
      for (float rise : {10.0f, 30.0f, 100.0f, 1e5f})
        for (bool masked : {false, true}) {
          if (masked && rise > 100.0f) continue;  // f32 would round the mask off
          Trial t(1, 1, 1, 70, 420, 64, 64);
          t.use(form);
          if (masked) t.add_mask();
          t.a.scale = 1.0f;
          std::fill(t.q.begin(), t.q.end(), 0.0f);
          std::fill(t.k.begin(), t.k.end(), 0.0f);
          for (size_t i = 0; i < 70; ++i) t.q[i * 64] = i % 2 ? -1.0f : 1.0f;
          for (size_t j = 0; j < 420; ++j) t.k[j * 64] = rise * (float(j / 128) - 2.0f);
          t.expect_right();
          if (::testing::Test::HasFatalFailure()) return;
        }
  });
}

// One mask for all queries, of numbers that cannot be multiplied.
TEST(Attention, PartsMaskedByTheLowestNumber) {
  for_each_level([] {
    for (size_t form : {size_t{1}, size_t{2}, Trial::kShorts})
      for (size_t hidden : {0, 3, 140, 200}) {
        Trial t(1, 2, 2, 40, 200, 64, 64);
        t.use(form);
        t.add_mask();
        t.a.mask_strides = {0, 0, 0};
        const float lowest = std::numeric_limits<float>::lowest();
        for (size_t j = 0; j < 200; ++j) t.mask[j] = j < hidden ? lowest : 0.0f;
        if (hidden == 200) t.a.scale = 0.0f;  // what is left of scores is f32's own rounding
        t.expect_right();
        if (::testing::Test::HasFatalFailure()) return;
      }
  });
}

TEST(Attention, PartsOfKeysAndMasksThatAreNoNumbers) {
  for_each_level([] {
    for (size_t form : {size_t{1}, size_t{2}, Trial::kShorts}) {
      Trial keys(1, 1, 1, 40, 200, 64, 64);
      keys.use(form);
      keys.k[150 * 64 + 5] = NAN;
      keys.run(ThreadPool::shared());
      for (float x : keys.out) ASSERT_TRUE(std::isnan(x));
      Trial mask(1, 1, 1, 40, 200, 64, 64);
      mask.use(form);
      mask.add_mask();
      mask.mask[7 * 200 + 190] = NAN;
      mask.run(ThreadPool::shared());
      for (size_t i = 0; i < 40; ++i) ASSERT_EQ(std::isnan(mask.out[i * 64]), i == 7) << i;
    }
  });
}

TEST(Attention, ThreadsAndBatchDoNotMatter) {
  for (size_t kind : {0, 1, 2, 3, 4}) {
    const size_t form = kind % 4;
    ThreadPool one(1), three(3);
    Trial a(3, 2, 2, 150, 150, 64, 64), b(3, 2, 2, 150, 150, 64, 64), c(3, 2, 2, 150, 150, 64, 64);
    for (Trial* t : {&a, &b, &c}) t->use(form);
    a.a.ordered = b.a.ordered = c.a.ordered = kind == 4;
    a.run(one);
    b.run(three);
    EXPECT_EQ(a.out, b.out);
    c.a.batch = 1;
    c.a.q += c.a.q_strides.batch;
    c.a.k += c.a.k_strides.batch;
    c.a.v += c.a.v_strides.batch;
    c.run(three);
    for (size_t i = 0; i < c.a.out_strides.batch; ++i)
      ASSERT_EQ(c.out[i], a.out[a.a.out_strides.batch + i]);
  }
}

}  // namespace
}  // namespace hologram::backends::dense
