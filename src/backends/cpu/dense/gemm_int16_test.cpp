// Products of f32 values as 16-bit integers: by digits and by shorts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/dense/unit_testing.h"

namespace hologram::backends::dense {
namespace {

struct Digits {
  using Gemm = GemmDigits;
  static constexpr double kError = 4e-5;  // of values that are drawn evenly
  static constexpr double kAlike = 1e-6;  // of values that are all as large
  static size_t packed_bytes(size_t k, size_t n) { return packed_b_digits_bytes(k, n); }
  static void pack(size_t k, size_t n, const float* b, size_t ldb, bool turned, std::byte* to) {
    pack_b_digits(k, n, b, ldb, turned, to);
  }
  static size_t scratch_bytes(const Gemm& g) { return gemm_digits_scratch_bytes(g); }
  static void run(const Gemm& g, std::byte* scratch, ThreadPool& pool) {
    gemm_digits(g, scratch, pool);
  }
};

struct Shorts {
  using Gemm = GemmShorts;
  static constexpr double kError = 5e-5;
  static constexpr double kAlike = 5e-5;  // a third of what a single value may be
  static size_t packed_bytes(size_t k, size_t n) { return packed_b_shorts_bytes(k, n); }
  static void pack(size_t k, size_t n, const float* b, size_t ldb, bool turned, std::byte* to) {
    pack_b_shorts(k, n, b, ldb, turned, to);
  }
  static size_t scratch_bytes(const Gemm& g) { return gemm_shorts_scratch_bytes(g); }
  static void run(const Gemm& g, std::byte* scratch, ThreadPool& pool) {
    gemm_shorts(g, scratch, pool);
  }
};

template <class Form>
struct Trial {
  size_t m, n, k, ldb;
  bool transposed;
  std::vector<float> a, b, c;
  AlignedBytes packed, scratch;
  typename Form::Gemm g;

  Trial(size_t m, size_t n, size_t k, bool transposed)
      : m(m), n(n), k(k), ldb(transposed ? k + 3 : n + 3), transposed(transposed) {
    a = random_values(m * (k + 2), 1);
    b = random_values((k + 3) * (n + 3), 2);
    c.assign(m * (n + 1), -77.0f);
  }
  float& weight(size_t i, size_t j) { return b[transposed ? j * ldb + i : i * ldb + j]; }
  void run(ThreadPool& pool, const Epilogue& epilogue = {}) {
    packed = poisoned_scratch(Form::packed_bytes(k, n));
    Form::pack(k, n, b.data(), ldb, transposed, packed.data());
    g = {.m = m,
         .n = n,
         .k = k,
         .a = a.data(),
         .lda = k + 2,
         .packed_b = packed.data(),
         .c = c.data(),
         .ldc = n + 1,
         .epilogue = epilogue};
    const size_t bytes = Form::scratch_bytes(g);
    scratch = poisoned_scratch(bytes);
    Form::run(g, scratch.data(), pool);
    for (size_t i = bytes; i < scratch.size(); ++i) EXPECT_EQ(scratch.data()[i], std::byte{0xff});
  }
};

template <class Form>
class GemmInt16 : public testing::Test {};
using Forms = testing::Types<Digits, Shorts>;
TYPED_TEST_SUITE(GemmInt16, Forms);

// Rows and columns of any size: each has a scale of its own.
TYPED_TEST(GemmInt16, KeepsFifteenBitsOfTheLargest) {
  for_each_unit_level([] {
    for (size_t m : {1, 16, 33, 70})
      for (size_t n : {1, 16, 40, 64})
        for (size_t k : {1, 63, 64, 65, 200, 2500})
          for (bool transposed : {false, true}) {
            Trial<TypeParam> t(m, n, k, transposed);
            for (size_t i = 0; i < m; ++i)
              for (size_t x = 0; x < k; ++x)
                t.a[i * (k + 2) + x] *= std::pow(10.0f, float(i % 7) - 3);
            for (size_t j = 0; j < n; ++j)
              for (size_t x = 0; x < k; ++x) t.weight(x, j) *= std::pow(10.0f, float(j % 5) - 2);
            Epilogue epilogue;
            const std::vector<float> bias = random_values(n, 3);
            epilogue.bias = bias.data();
            t.run(ThreadPool::shared(), epilogue);
            double error = 0, norm = 0;
            for (size_t i = 0; i < m; ++i) {
              for (size_t j = 0; j < n; ++j) {
                double sum = 0, squares = 0;
                for (size_t x = 0; x < k; ++x) {
                  const double term = double(t.a[i * (k + 2) + x]) * t.weight(x, j);
                  sum += term;
                  squares += term * term;
                }
                const double difference = t.c[i * (n + 1) + j] - bias[j] - sum;
                const double rounding = 2e-7 * std::abs(bias[j]);  // of the bias
                error += std::pow(std::max(std::abs(difference) - rounding, 0.0), 2) / squares;
                norm += 1;
              }
              ASSERT_EQ(t.c[i * (n + 1) + n], -77.0f);
            }
            ASSERT_LE(std::sqrt(error / norm), TypeParam::kError) << m << "x" << n << "x" << k;
          }
  });
}

TYPED_TEST(GemmInt16, ExtremesAndZeros) {
  for_each_unit_level([] {
    Trial<TypeParam> t(5, 33, 70, false);
    const float inf = std::numeric_limits<float>::infinity();
    for (size_t x = 0; x < 70; ++x) {
      t.a[0 * 72 + x] = x % 2 ? 3e38f : -3e38f;  // large, and all of the largest digits
      t.a[1 * 72 + x] = 0;
      t.a[4 * 72 + x] = 1e-38f;
      t.weight(x, 32) = 0;
    }
    t.a[2 * 72 + 69] = inf;
    t.a[3 * 72 + 1] = std::numeric_limits<float>::quiet_NaN();
    for (size_t x = 0; x < 70; ++x) t.weight(x, 0) = x % 2 ? 1e-28f : -1e-28f;
    t.weight(0, 1) = inf;
    t.run(ThreadPool::shared());
    EXPECT_NEAR(t.c[0] / (70 * 3e38 * 1e-28), 1, TypeParam::kAlike);
    for (size_t j = 2; j < 33; ++j) {
      EXPECT_EQ(t.c[1 * 34 + j], 0);
      EXPECT_TRUE(std::isnan(t.c[2 * 34 + j]));
      EXPECT_TRUE(std::isnan(t.c[3 * 34 + j]));
      EXPECT_EQ(t.c[4 * 34 + j], 0);
    }
    EXPECT_EQ(t.c[32], 0);
    for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(t.c[i * 34 + 1]));
  });
}

TYPED_TEST(GemmInt16, ThreadsDoNotMatter) {
  ThreadPool one(1), three(3);
  Trial<TypeParam> t(150, 97, 300, false);
  t.run(one);
  const std::vector<float> expected = t.c;
  t.run(three);
  EXPECT_EQ(expected, t.c);
}

// All values as large as their scale lets them be, of one sign: no sum leaves 32 bits.
TYPED_TEST(GemmInt16, TheLargestSums) {
  for_each_unit_level([] {
    for (size_t used : {1, 2, 7, 32, 64}) {  // of each 64 terms
      Trial<TypeParam> t(20, 48, 640, false);
      for (size_t x = 0; x < 640; ++x) {
        for (size_t i = 0; i < 20; ++i) t.a[i * 642 + x] = x % 64 < used ? 0.7f : 0;
        for (size_t j = 0; j < 48; ++j) t.weight(x, j) = x % 64 < used ? -1.3f : 0;
      }
      t.run(ThreadPool::shared());
      const double expected = -0.7 * 1.3 * 10.0 * double(used);
      for (size_t i = 0; i < 20; ++i)
        for (size_t j = 0; j < 48; ++j)
          ASSERT_NEAR(t.c[i * 49 + j], expected, -1e-4 * expected) << used;
    }
  });
}

// A chunk whose values are far larger than those of the others sets the scale; rows of one large
// value among small ones keep what a norm leaves them.
TYPED_TEST(GemmInt16, OneLargeValue) {
  for_each_unit_level([] {
    Trial<TypeParam> t(3, 17, 200, true);
    for (size_t i = 0; i < 3; ++i) t.a[i * 202 + 70 * i] = 100;
    for (size_t j = 0; j < 17; ++j) t.weight(11 * j, j) = -50;
    t.run(ThreadPool::shared());
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 17; ++j) {
        double sum = 0, a = 0, b = 0;
        for (size_t x = 0; x < 200; ++x) {
          sum += double(t.a[i * 202 + x]) * t.weight(x, j);
          a += std::abs(t.a[i * 202 + x]);
          b += std::abs(t.weight(x, j));
        }
        // Some 2^-15 of each side's largest value times all of the other's.
        ASSERT_NEAR(t.c[i * 18 + j], sum, 5e-5 * (100 * b + 50 * a));
      }
  });
}

}  // namespace
}  // namespace hologram::backends::dense
