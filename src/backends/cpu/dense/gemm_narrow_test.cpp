#include "backends/cpu/dense/gemm_narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/dense/unit_testing.h"
#include "backends/cpu/dense/unit_tile.h"

namespace hologram::backends::dense {
namespace {

std::vector<uint8_t> random_bytes(size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = static_cast<uint8_t>(seed >> 24);
  }
  // The extremes, next to each other, where a saturating instruction would show.
  for (size_t i = 0; i < std::min<size_t>(count, 8); ++i) bytes[i] = i % 2 ? 0x80 : 0x7f;
  return bytes;
}

struct Int8Trial {
  bool a_signed, b_signed, transposed;
  std::vector<uint8_t> a, b;
  std::vector<int32_t> zeros, bias;
  std::vector<float> scales;
  AlignedBytes packed, scratch;
  GemmInt8 g;

  Int8Trial(size_t m, size_t n, size_t k, int kind)
      : a_signed(kind & 1), b_signed(kind & 2), transposed(kind & 4) {
    a = random_bytes(m * (k + 3), 1);
    b = random_bytes(transposed ? n * (k + 5) : k * (n + 5), 2);
    scales = random_values(n, 3, 0.001f, 0.01f);
    for (size_t j = 0; j < n; ++j) {
      zeros.push_back(b_signed ? int32_t(j % 200) - 100 : int32_t(j % 255));
      bias.push_back(int32_t(j * 1000) - 3000);
    }
    packed = poisoned_scratch(packed_b_int8_bytes(k, n));
    pack_b_int8(k, n, b.data(), transposed ? k + 5 : n + 5, transposed, b_signed, packed.data());
    g = {.m = m, .n = n, .k = k, .a = a.data(), .lda = k + 3, .a_signed = a_signed};
    g.packed_b = packed.data();
    if (kind & 8) {
      g.a_zero = a_signed ? -7 : 131;
      g.b_zeros = zeros.data();
      g.bias32 = bias.data();
    }
    g.ldc = n + 1;
  }
  int64_t exact(size_t i, size_t j) const {
    int64_t sum = g.bias32 ? bias[j] : 0;
    for (size_t k = 0; k < g.k; ++k) {
      const uint8_t x = a[i * g.lda + k];
      const uint8_t y = b[transposed ? j * (g.k + 5) + k : k * (g.n + 5) + j];
      const int64_t xv = a_signed ? int8_t(x) : x, yv = b_signed ? int8_t(y) : y;
      sum += (xv - g.a_zero) * (yv - (g.b_zeros ? zeros[j] : 0));
    }
    return sum;
  }
  void run(ThreadPool& pool) {
    scratch = poisoned_scratch(gemm_int8_scratch_bytes(g));
    gemm_int8(g, scratch.data(), pool);
  }
};

TEST(GemmInt8, ExactOnEveryLevel) {
  for_each_unit_level([] {
    for (size_t m : {1, 2, 3, 4, 5, 14, 29, 67})
      for (size_t n : {1, 16, 31, 50, 64})
        for (size_t k : {1, 3, 4, 63, 64, 129})
          for (int kind = 0; kind < 16; ++kind) {
            Int8Trial t(m, n, k, kind);
            std::vector<int32_t> c(m * (n + 1), -77);
            t.g.c = c.data();
            t.run(ThreadPool::shared());
            for (size_t i = 0; i < m; ++i) {
              for (size_t j = 0; j < n; ++j)
                ASSERT_EQ(c[i * (n + 1) + j], t.exact(i, j))
                    << m << "x" << n << "x" << k << " kind " << kind << " at " << i << "," << j;
              ASSERT_EQ(c[i * (n + 1) + n], -77);
            }
          }
  });
}

TEST(GemmInt8, DequantisesAndRequantises) {
  for_each_unit_level([] {
    for (size_t n : {7, 32, 48})
      for (int kind = 0; kind < 16; ++kind) {
        Int8Trial t(9, n, 100, kind);
        t.g.scales = t.scales.data();
        t.g.epilogue.activation = Activation::relu;
        std::vector<float> c(9 * (n + 1), -77.0f);
        t.g.c = c.data();
        t.g.output = Int8Output::f32;
        t.run(ThreadPool::shared());
        for (size_t i = 0; i < 9; ++i)
          for (size_t j = 0; j < n; ++j)
            ASSERT_FLOAT_EQ(c[i * (n + 1) + j], std::max(0.0f, float(t.exact(i, j)) * t.scales[j]));
        t.g.epilogue = {};
        t.g.output_scale = 2.5f;
        t.g.output_zero = 3;
        std::vector<uint8_t> q(9 * (n + 1), 200);
        t.g.c = q.data();
        for (Int8Output output : {Int8Output::u8, Int8Output::s8}) {
          t.g.output = output;
          t.run(ThreadPool::shared());
          const float low = output == Int8Output::s8 ? -128.0f : 0.0f;
          for (size_t i = 0; i < 9; ++i) {
            for (size_t j = 0; j < n; ++j) {
              const float v = std::nearbyint(float(t.exact(i, j)) * t.scales[j] / 2.5f) + 3.0f;
              const float right = std::min(std::max(v, low), low + 255.0f);
              const uint8_t got = q[i * (n + 1) + j];
              ASSERT_EQ(output == Int8Output::s8 ? float(int8_t(got)) : float(got), right);
            }
            ASSERT_EQ(q[i * (n + 1) + n], 200);
          }
        }
      }
  });
}

// Rows of f32, each by its own scale; what that loses is half a step of the row a term.
TEST(GemmInt8, TakesRowsOfFloats) {
  for_each_unit_level([] {
    for (size_t m : {1, 2, 4, 5, 33})
      for (size_t n : {7, 32, 48})
        for (size_t k : {1, 3, 16, 63, 64, 129, 200}) {
          Int8Trial t(m, n, k, 2);
          ASSERT_TRUE(t.b_signed);
          t.g.b_zeros = nullptr;
          t.g.bias32 = nullptr;
          const size_t lda = k + 3;
          std::vector<float> values(m * lda, std::nanf(""));  // what lies between is not read
          for (size_t i = 0; i < m; ++i)
            for (size_t j = 0; j < k; ++j)
              values[i * lda + j] = std::ldexp(float(t.a[(i * k + j) % t.a.size()]) - 77.0f,
                                               -8 * static_cast<int>(i));
          t.g.values = values.data();
          t.g.lda = lda;
          t.g.scales = t.scales.data();
          t.g.output = Int8Output::f32;
          std::vector<float> c(m * (n + 1), -77.0f);
          t.g.c = c.data();
          t.run(ThreadPool::shared());
          for (size_t i = 0; i < m; ++i) {
            const auto row = std::span(values).subspan(i * lda, k);
            const auto [least, most] = std::ranges::minmax(row);
            const double step = (std::max(most, 0.0f) - std::min(least, 0.0f)) / 255.0;
            for (size_t j = 0; j < n; ++j) {
              double sum = 0, size = 0;
              for (size_t x = 0; x < k; ++x) {
                const double weight =
                    int8_t(t.b[t.transposed ? j * (k + 5) + x : x * (n + 5) + j]) * t.scales[j];
                sum += row[x] * weight;
                size += std::abs(weight);
              }
              // The zero point is rounded as well.
              ASSERT_NEAR(c[i * (n + 1) + j], sum, 1.01 * step * size + 1e-30) << m << n << k;
            }
            ASSERT_EQ(c[i * (n + 1) + n], -77.0f);
          }
        }
  });
}

// Products that keep 8 bits of their operands have no use for an exact Gelu; bytes that the model
// itself made have.
TEST(GemmInt8, FinishesFloatsWithANearGelu) {
  for_each_unit_level([] {
    for (const size_t m : {9, 40})
      for (int kind = 0; kind < 16; ++kind) {
        const bool floats = kind & 1, gelu = kind & 2;
        constexpr size_t n = 40, ldc = n + 1, k = 70;  // 32 columns, and 8 of 16
        Int8Trial t(m, n, k, 2);
        std::vector<float> values(m * k), plain(m * ldc), c(m * ldc, -77.0f);
        for (size_t i = 0; i < values.size(); ++i) values[i] = float(t.a[i]) * 0.01f - 1.0f;
        if (floats) t.g.values = values.data(), t.g.lda = k;
        t.g.scales = t.scales.data();
        t.g.output = Int8Output::f32;
        t.g.c = plain.data();
        t.run(ThreadPool::shared());
        const std::vector<float> bias = random_values(n, 5),
                                 residual = random_values(m * (n + 2), 6);
        Epilogue& e = t.g.epilogue;
        if (gelu) e.activation = Activation::gelu_erf;
        if (kind & 4) e.bias = bias.data();
        if (kind & 8) e.residual = residual.data(), e.residual_stride = n + 2;
        t.g.c = c.data();
        t.run(ThreadPool::shared());
        double worst = 0;
        for (size_t i = 0; i < m; ++i) {
          for (size_t j = 0; j < n; ++j) {
            double x = plain[i * ldc + j];
            if (kind & 4) x += bias[j];
            if (kind & 8) x += residual[i * (n + 2) + j];
            const double right = gelu ? x / 2 * (1 + std::erf(x / std::sqrt(2.0))) : x;
            worst = std::max(worst, std::abs(c[i * ldc + j] - right) / std::max(1.0, std::abs(x)));
          }
          ASSERT_EQ(c[i * ldc + n], -77.0f);
        }
        EXPECT_LT(worst, floats && gelu ? 2e-4 : 1e-6) << "kind " << kind;
      }
  });
}

TEST(GemmInt8, RowsThatAreNotFiniteBecomeNaN) {
  for_each_unit_level([] {
    for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF, 3e38f}) {
      Int8Trial t(3, 20, 70, 2);
      t.g.b_zeros = nullptr;
      t.g.bias32 = nullptr;
      std::vector<float> values(3 * 70, 0.25f), c(3 * 21);
      values[70 + 69] = bad;
      values[70] = -3e38f;
      std::fill_n(values.begin() + 140, 70, 0.0f);
      t.g.values = values.data();
      t.g.lda = 70;
      t.g.output = Int8Output::f32;
      t.g.c = c.data();
      t.run(ThreadPool::shared());
      for (size_t j = 0; j < 20; ++j) {
        EXPECT_TRUE(std::isfinite(c[j]));
        EXPECT_EQ(std::isnan(c[21 + j]), !std::isfinite(bad));
        EXPECT_EQ(c[42 + j], 0.0f);
      }
    }
  });
}

TEST(GemmInt8, ThreadsDoNotMatter) {
  ThreadPool one(1), three(3);
  Int8Trial t(100, 200, 300, 9);
  std::vector<int32_t> c(100 * 201), d(100 * 201);
  t.g.c = c.data();
  t.run(one);
  t.g.c = d.data();
  t.run(three);
  EXPECT_EQ(c, d);
}

float to_bf16(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

TEST(GemmBf16, RoundsOperandsAndSumsInF32) {
  for_each_unit_level([] {
    for (size_t m : {1, 6, 15})
      for (size_t n : {1, 16, 40})
        for (size_t k : {0, 1, 2, 31, 33, 200})
          for (bool transposed : {false, true}) {
            const std::vector<float> a = random_values(m * (k + 2), 1),
                                     b = random_values((k + 3) * (n + 3), 2),
                                     bias = random_values(n, 3);
            const size_t ldb = transposed ? k + 3 : n + 3;
            AlignedBytes packed = poisoned_scratch(packed_b_bf16_bytes(k, n));
            pack_b_bf16(k, n, b.data(), ldb, transposed, packed.data());
            std::vector<float> c(m * (n + 1), -77.0f);
            GemmBf16 g{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .lda = k + 2,
                       .packed_b = packed.data(),
                       .c = c.data(),
                       .ldc = n + 1};
            g.epilogue.bias = bias.data();
            AlignedBytes scratch = poisoned_scratch(gemm_bf16_scratch_bytes(g));
            gemm_bf16(g, scratch.data(), ThreadPool::shared());
            for (size_t i = 0; i < m; ++i)
              for (size_t j = 0; j < n; ++j) {
                double sum = bias[j];
                for (size_t x = 0; x < k; ++x)
                  sum += double(to_bf16(a[i * (k + 2) + x])) *
                         to_bf16(b[transposed ? j * ldb + x : x * ldb + j]);
                ASSERT_NEAR(c[i * (n + 1) + j], sum, 1e-6 + 1e-7 * double(k)) << m << n << k;
              }
          }
  });
}

// As exact as the parts.
TEST(GemmBf16, FinishesPartsWithAGelu) {
  for_each_unit_level([] {
    for (const Bf16Parts parts : {Bf16Parts::one, Bf16Parts::two}) {
      constexpr size_t m = 35, n = 40, k = 70;
      const std::vector<float> a = random_values(m * k, 1), b = random_values(k * n, 2);
      AlignedBytes packed = poisoned_scratch(packed_b_bf16_bytes(k, n, parts));
      pack_b_bf16(k, n, b.data(), n, false, packed.data(), parts);
      std::vector<float> plain(m * n), c(m * n);
      GemmBf16 g{.m = m,
                 .n = n,
                 .k = k,
                 .a = a.data(),
                 .lda = k,
                 .parts = parts,
                 .packed_b = packed.data(),
                 .c = plain.data(),
                 .ldc = n};
      AlignedBytes scratch = poisoned_scratch(gemm_bf16_scratch_bytes(g));
      gemm_bf16(g, scratch.data(), ThreadPool::shared());
      g.c = c.data();
      g.epilogue.activation = Activation::gelu_erf;
      gemm_bf16(g, scratch.data(), ThreadPool::shared());
      for (size_t i = 0; i < m * n; ++i) {
        const double x = plain[i];
        ASSERT_NEAR(c[i], x / 2 * std::erfc(-x / std::sqrt(2.0)),
                    parts == Bf16Parts::two ? 1.5e-6 + 1e-7 * std::abs(x) : 2e-4);
      }
    }
  });
}

// The sums of two parts keep 16 bits of each operand.
TEST(GemmBf16, TwoPartsAreNearlyF32) {
  for_each_unit_level([] {
    for (size_t m : {1, 16, 33, 70})
      for (size_t n : {1, 16, 40, 64})
        for (size_t k : {1, 31, 32, 33, 200, 700})
          for (bool transposed : {false, true}) {
            const std::vector<float> a = random_values(m * (k + 2), 1),
                                     b = random_values((k + 3) * (n + 3), 2);
            const size_t ldb = transposed ? k + 3 : n + 3;
            AlignedBytes packed = poisoned_scratch(packed_b_bf16_bytes(k, n, Bf16Parts::two));
            pack_b_bf16(k, n, b.data(), ldb, transposed, packed.data(), Bf16Parts::two);
            std::vector<float> c(m * (n + 1), -77.0f);
            GemmBf16 g{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.data(),
                       .lda = k + 2,
                       .parts = Bf16Parts::two,
                       .packed_b = packed.data(),
                       .c = c.data(),
                       .ldc = n + 1};
            AlignedBytes scratch = poisoned_scratch(gemm_bf16_scratch_bytes(g));
            gemm_bf16(g, scratch.data(), ThreadPool::shared());
            double error = 0, norm = 0;
            for (size_t i = 0; i < m; ++i) {
              for (size_t j = 0; j < n; ++j) {
                double sum = 0;
                for (size_t x = 0; x < k; ++x) {
                  const double term =
                      double(a[i * (k + 2) + x]) * b[transposed ? j * ldb + x : x * ldb + j];
                  sum += term;
                  norm += term * term;  // what the sum is expected to be, without cancellation
                }
                error += (c[i * (n + 1) + j] - sum) * (c[i * (n + 1) + j] - sum);
              }
              ASSERT_EQ(c[i * (n + 1) + n], -77.0f);
            }
            ASSERT_LE(std::sqrt(error / norm), 2e-5) << m << "x" << n << "x" << k;
          }
  });
}

TEST(GemmBf16, ThreadsDoNotMatter) {
  ThreadPool one(1), three(3);
  const size_t m = 150, n = 200, k = 1000;
  const std::vector<float> a = random_values(m * k, 1), b = random_values(k * n, 2);
  for (Bf16Parts parts : {Bf16Parts::one, Bf16Parts::two}) {
    AlignedBytes packed = poisoned_scratch(packed_b_bf16_bytes(k, n, parts));
    pack_b_bf16(k, n, b.data(), n, false, packed.data(), parts);
    std::vector<float> c(m * n), d(m * n);
    GemmBf16 g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .parts = parts};
    g.packed_b = packed.data();
    g.ldc = n;
    AlignedBytes scratch = poisoned_scratch(gemm_bf16_scratch_bytes(g));
    g.c = c.data();
    gemm_bf16(g, scratch.data(), one);
    g.c = d.data();
    gemm_bf16(g, scratch.data(), three);
    EXPECT_EQ(c, d);
  }
}

TEST(SplitPixels, HalvesAddUpAndTheRestIsZero) {
  for_each_level([] {
    std::vector<float> values = random_values(45, 9, -1e3f, 1e3f);
    values[3] = HUGE_VALF;
    values[4] = 0.0f;
    std::vector<uint32_t> high(32, 7), low(32, 7);
    split_pixels(values.data(), values.data() + 16, 1, 32, 32, high.data(), low.data());
    split_pixels(values.data() + 32, nullptr, 1, 32, 13, high.data() + 16, low.data() + 16);
    for (size_t i = 0; i < 64; ++i) {
      const auto part = [&](const std::vector<uint32_t>& from) {
        return std::bit_cast<float>(i % 2 ? from[i / 2] & 0xffff0000u : from[i / 2] << 16);
      };
      if (i >= values.size()) {
        EXPECT_EQ(part(high), 0.0f);
        EXPECT_EQ(part(low), 0.0f);
      } else if (std::isinf(values[i])) {
        EXPECT_EQ(part(high), values[i]);
      } else {
        EXPECT_NEAR(part(high) + part(low), values[i], std::abs(values[i]) * 0x1p-16f);
      }
    }
  });
}

}  // namespace
}  // namespace hologram::backends::dense
