#include "backends/cpu/dense/gemm_bits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

struct Trial {
  BitsForm form;
  bool transposed;
  std::vector<uint8_t> codes;
  std::vector<float> scales, zeros, a, bias;
  AlignedBytes packed;

  Trial(size_t m, BitsForm f, bool transposed) : form(f), transposed(transposed) {
    uint32_t seed = 7;
    for (size_t i = 0; i < form.k * form.n; ++i) {
      seed = seed * 1664525u + 1013904223u;
      codes.push_back(static_cast<uint8_t>(form.bits == 8 ? seed >> 24 : seed >> 28));
    }
    scales = random_values(form.n * form.groups(), 3, 0.001f, 0.01f);
    if (form.zeros)
      for (size_t i = 0; i < scales.size(); ++i)
        zeros.push_back(static_cast<float>(form.bits == 8 ? i % 256 : i % 16));
    a = random_values(m * (form.k + 3), 5);
    bias = random_values(form.n, 9);
    pack();
  }
  void pack() {
    packed = poisoned_scratch(packed_b_bits_bytes(form));
    pack_b_bits(form,
                {.codes = codes.data(),
                 .transposed = transposed,
                 .scales = scales.data(),
                 .zeros = form.zeros ? zeros.data() : nullptr},
                packed.data());
  }
  long double weight(size_t k, size_t j) const {
    const uint8_t code = codes[transposed ? j * form.k + k : k * form.n + j];
    const size_t at = j * form.groups() + k / form.group_rows();
    const float zero = form.zeros ? zeros[at] : form.bits == 8 ? 128.0f : 8.0f;
    return (static_cast<long double>(code) - zero) * scales[at];
  }
  std::vector<float> run(size_t m, ThreadPool& pool, size_t first = 0) const {
    std::vector<float> c(m * (form.n + 2), NAN);
    GemmBits g{.m = m,
               .form = form,
               .a = a.data() + first * (form.k + 3),
               .lda = form.k + 3,
               .packed_b = packed.data(),
               .c = c.data(),
               .ldc = form.n + 2};
    g.epilogue.bias = bias.data();
    g.epilogue.activation = Activation::relu;
    AlignedBytes scratch = poisoned_scratch(gemm_bits_scratch_bytes(g));
    gemm_bits(g, scratch.data(), pool);
    return c;
  }
};

// Of `count` floats, which may be NaN.
std::vector<uint32_t> bits_of(const float* values, size_t count) {
  std::vector<uint32_t> bits(count);
  std::memcpy(bits.data(), values, count * sizeof(float));
  return bits;
}

std::vector<BitsForm> forms() {
  std::vector<BitsForm> all;
  for (unsigned bits : {4u, 8u})
    for (size_t group : {size_t{0}, size_t{16}, size_t{32}})
      for (size_t k : {1, 8, 31, 96, 101, 259})
        for (size_t n : {1, 32, 45})
          for (bool zeros : {false, true}) all.push_back({k, n, bits, group, zeros});
  return all;
}

TEST(GemmBits, IsTheProductByWhatTheCodesStandFor) {
  ThreadPool pool(2);
  for_each_level([&] {
    for (const BitsForm& form : forms())
      for (size_t m : {1, 2, 7}) {
        const Trial trial(m, form, form.n % 2 == 1);
        const auto c = trial.run(m, pool);
        for (size_t i = 0; i < m; ++i)
          for (size_t j = 0; j < form.n; ++j) {
            long double sum = trial.bias[j], size = std::abs(trial.bias[j]);
            for (size_t k = 0; k < form.k; ++k) {
              const long double x = trial.a[i * (form.k + 3) + k], w = trial.weight(k, j);
              sum += x * w;
              // Codes are multiplied before the zero is taken off.
              size += std::abs(x) * (form.bits == 8 ? 256 : 16) *
                      trial.scales[j * form.groups() + k / form.group_rows()];
            }
            ASSERT_NEAR(c[i * (form.n + 2) + j], std::max(sum, 0.0L), size * 1e-6)
                << form.bits << " bits, " << m << " x " << form.k << " x " << form.n << " group "
                << form.group << " at " << i << ", " << j;
          }
      }
  });
}

TEST(GemmBits, SmallAndUndefinedValues) {
  ThreadPool pool(1);
  for_each_level([&] {
    Trial trial(3, {96, 33, 4, 32, false}, false);
    for (size_t i = 0; i < 96; ++i) trial.a[i] = 0.0f;
    for (size_t i = 32; i < 64; ++i) trial.a[99 + i] *= 1e-12f;  // a group of its own scale
    trial.a[2 * 99 + 40] = NAN;
    const auto c = trial.run(3, pool);
    for (size_t j = 0; j < 33; ++j) {
      EXPECT_EQ(c[j], std::max(trial.bias[j], 0.0f));
      long double sum = trial.bias[j];
      for (size_t k = 0; k < 96; ++k) sum += trial.a[99 + k] * trial.weight(k, j);
      EXPECT_NEAR(c[35 + j], std::max(sum, 0.0L), 1e-5);
    }
    trial.bias.assign(33, 100.0f);  // a maximum with 0 may lose a NaN, a sum does not
    EXPECT_FALSE(trial.run(3, pool)[70] > 0);
  });
}

// Values are integers of a run of 128 rows: a large one leaves those of other runs alone.
TEST(GemmBits, LargeValuesAmongSmallOnes) {
  ThreadPool pool(1);
  for_each_level([&] {
    for (const unsigned bits : {4u, 8u}) {
      Trial trial(1, {300, 33, bits, 0, false}, false);
      for (size_t k = 0; k < 128; ++k) trial.a[k] = k == 5 ? 1e6f : 0.0f;
      for (size_t j = 0; j < 33; ++j) trial.codes[5 * 33 + j] = bits == 8 ? 128 : 8;  // by 0
      trial.pack();
      const auto c = trial.run(1, pool);
      for (size_t j = 0; j < 33; ++j) {
        long double sum = trial.bias[j];
        for (size_t k = 0; k < 300; ++k) sum += trial.a[k] * trial.weight(k, j);
        EXPECT_NEAR(c[j], std::max(sum, 0.0L), 1e-4) << bits;
      }
    }
  });
}

// The largest codes by the largest values of either sign, in groups whose sums they make largest.
TEST(GemmBits, SumsStayWithin32Bits) {
  ThreadPool pool(1);
  for_each_level([&] {
    for (const unsigned bits : {4u, 8u})
      for (const size_t group : {0, 32})
        for (const float sign : {-1.0f, 1.0f})
          for (const bool top : {false, true}) {
            Trial trial(1, {4096, 32, bits, group, false}, false);
            std::fill(trial.a.begin(), trial.a.end(), sign);
            // Lower and upper columns by each other's opposite ends.
            for (size_t i = 0; i < trial.codes.size(); ++i)
              trial.codes[i] = (i % 32 < 16) == top ? (bits == 8 ? 255 : 15) : 0;
            trial.pack();
            const auto c = trial.run(1, pool);
            for (size_t j = 0; j < 32; ++j) {
              long double sum = trial.bias[j];
              for (size_t k = 0; k < 4096; ++k) sum += trial.a[k] * trial.weight(k, j);
              EXPECT_NEAR(c[j], std::max(sum, 0.0L), std::abs(sum) * 1e-5) << bits << ' ' << j;
            }
          }
  });
}

TEST(GemmBits, SameBitsForEveryBatchAndThreadCount) {
  ThreadPool one(1), three(3);
  for (const BitsForm form : {BitsForm{288, 517, 4, 32, true}, BitsForm{288, 517, 8, 0, true}}) {
    const Trial trial(9, form, false);
    const auto all = trial.run(9, three);
    EXPECT_EQ(bits_of(all.data(), 9 * 519 - 2), bits_of(trial.run(9, one).data(), 9 * 519 - 2));
    for (size_t i = 0; i < 9; ++i) {
      const auto row = trial.run(1, one, i);
      EXPECT_EQ(bits_of(row.data(), 517), bits_of(all.data() + i * 519, 517)) << i;
    }
  }
}

// Of 16 bits the weights are given as they are.
struct Words {
  BitsForm form;
  bool transposed;
  std::vector<float> b, a, bias;
  AlignedBytes packed;

  Words(size_t m, BitsForm f, bool transposed) : form(f), transposed(transposed) {
    b = random_values(form.k * form.n, 3);
    a = random_values(m * (form.k + 3), 5);
    bias = random_values(form.n, 9);
    pack();
  }
  void pack() {
    packed = poisoned_scratch(packed_b_bits_bytes(form));
    pack_b_words(form, b.data(), transposed ? form.k : form.n, transposed, packed.data());
  }
  float& weight(size_t k, size_t j) { return b[transposed ? j * form.k + k : k * form.n + j]; }
  // As it was rounded, by a scale a group of a column.
  long double rounded(size_t k, size_t j) {
    const size_t first = k / form.group_rows() * form.group_rows();
    float largest = 0;
    for (size_t i = first; i < std::min(first + form.group_rows(), form.k); ++i)
      largest = std::max(largest, std::abs(weight(i, j)));
    const float scale = largest / 32767.0f;
    return std::nearbyint(weight(k, j) / scale) * static_cast<long double>(scale);
  }
  std::vector<float> run(size_t m, ThreadPool& pool, size_t first = 0) const {
    std::vector<float> c(m * (form.n + 2), NAN);
    GemmBits g{.m = m,
               .form = form,
               .a = a.data() + first * (form.k + 3),
               .lda = form.k + 3,
               .packed_b = packed.data(),
               .c = c.data(),
               .ldc = form.n + 2};
    g.epilogue.bias = bias.data();
    AlignedBytes scratch = poisoned_scratch(gemm_bits_scratch_bytes(g));
    gemm_bits(g, scratch.data(), pool);
    return c;
  }
};

TEST(GemmBits, WordsAreTheProductByRoundedWeights) {
  ThreadPool pool(2);
  for_each_level([&] {
    for (size_t group : {0, 1, 31, 128, 200})
      for (size_t k : {1, 2, 15, 128, 129, 259, 400})
        for (size_t n : {1, 32, 45})
          for (size_t m : {1, 2, 5}) {
            Words trial(m, {k, n, 16, group, false}, n % 2 == 1);
            const auto c = trial.run(m, pool);
            for (size_t j = 0; j < n; ++j) {
              std::vector<long double> column(k);
              for (size_t i = 0; i < k; ++i) column[i] = trial.rounded(i, j);
              for (size_t r = 0; r < m; ++r) {
                long double sum = trial.bias[j], size = std::abs(trial.bias[j]);
                for (size_t i = 0; i < k; ++i) {
                  sum += trial.a[r * (k + 3) + i] * column[i];
                  // An integer of 20 bits of the largest value of its run.
                  size += std::abs(column[i]);
                }
                ASSERT_NEAR(c[r * (n + 2) + j], sum, size * 1.2e-6)
                    << m << " x " << k << " x " << n << " group " << group << " at " << r << ", "
                    << j;
              }
              for (size_t i = 0; i < k; ++i)
                ASSERT_NEAR(column[i], trial.weight(i, j), 2e-5);  // of values up to 1
            }
          }
  });
}

// The largest digits and weights of one sign: what comes nearest to the ends of 32 bits.
TEST(GemmBits, SumsOfWordsStayWithin32Bits) {
  ThreadPool pool(1);
  for_each_level([&] {
    for (const float sign : {1.0f, -1.0f})
      for (const float most : {1.0f, 523775.0f / 524287.0f}) {  // digits of 512, 0 and 511, 511
        Words trial(1, {256, 32, 16, 0, false}, false);
        std::ranges::fill(trial.a, sign * most);
        trial.a[0] = trial.a[128] = sign;
        std::ranges::fill(trial.b, 1.0f);
        std::ranges::fill(trial.bias, 0.0f);
        trial.pack();
        const auto c = trial.run(1, pool);
        for (size_t j = 0; j < 32; ++j) EXPECT_NEAR(c[j], sign * (2 + 254 * most), 1e-3);
      }
  });
}

TEST(GemmBits, WordsOfSmallAndUndefinedValues) {
  ThreadPool pool(1);
  for_each_level([&] {
    Words trial(4, {300, 33, 16, 128, false}, false);
    for (size_t k = 0; k < 300; ++k) {
      trial.a[k] = 0.0f;
      trial.a[2 * 303 + k] = k == 5 ? 1e6f : k < 128 ? 0.0f : trial.a[2 * 303 + k];
      trial.weight(k, 2) = 0.0f;
      trial.weight(k, 3) *= k < 128 ? 1e-6f : 1.0f;  // a group of its own scale
      trial.weight(k, 6) = 1e-38f;
    }
    for (size_t j = 0; j < 33; ++j) trial.weight(5, j) = 0.0f;  // by 0 for the large one
    trial.weight(7, 4) = NAN;
    trial.weight(200, 5) = INFINITY;
    trial.a[3 * 303 + 40] = NAN;
    trial.pack();
    const auto c = trial.run(4, pool);
    for (size_t j = 0; j < 33; ++j) {
      EXPECT_TRUE(std::isnan(c[3 * 35 + j]));
      if (j == 4 || j == 5) {
        EXPECT_TRUE(std::isnan(c[j]) && std::isnan(c[35 + j]));
        continue;
      }
      EXPECT_EQ(c[j], trial.bias[j]);
      for (size_t r : {1, 2}) {
        long double sum = trial.bias[j];
        for (size_t k = 0; k < 300; ++k) sum += trial.a[r * 303 + k] * trial.weight(k, j);
        EXPECT_NEAR(c[r * 35 + j], sum, 1e-3) << j;
      }
    }
  });
}

TEST(GemmBits, WordsHaveTheSameBitsForEveryBatchAndThreadCount) {
  ThreadPool one(1), three(3);
  const Words trial(9, {700, 517, 16, 128, false}, false);
  const auto all = trial.run(9, three);
  EXPECT_EQ(bits_of(all.data(), 9 * 519 - 2), bits_of(trial.run(9, one).data(), 9 * 519 - 2));
  for (size_t i = 0; i < 9; ++i) {
    const auto row = trial.run(1, i % 2 ? one : three, i);
    EXPECT_EQ(bits_of(row.data(), 517), bits_of(all.data() + i * 519, 517)) << i;
  }
}

}  // namespace
}  // namespace hologram::backends::dense
