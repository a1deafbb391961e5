// Reductions, softmax, losses and products, on every type, against long double.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "runtime/ops/ops.h"
#include "runtime/testing.h"

namespace hologram::runtime::ops {
namespace {

using runtime::testing::executor;
using runtime::testing::kIsFloat;
using runtime::testing::make;
using runtime::testing::make_strided;
using runtime::testing::near;
using runtime::testing::random_values;
using runtime::testing::ulp;
using runtime::testing::value_of;
using runtime::testing::wide;

template <typename F>
void for_floats(F f) {
  f(Half{}), f(BFloat16{}), f(float{}), f(double{});
}
template <typename F>
void for_numbers(F f) {
  f(int8_t{}), f(int16_t{}), f(int32_t{}), f(int64_t{});
  f(uint8_t{}), f(uint16_t{}), f(uint32_t{}), f(uint64_t{});
  for_floats(f);
}

// Elements of any type as long double.
std::vector<long double> wide_elements(const Tensor& t) {
  std::vector<long double> result;
  const auto add = [&]<typename T>(T) {
    if (t.type() != dtype_of<T>()) return;
    for (const T& value : value_of(t.to_vector<T>())) result.push_back(wide(value));
  };
  for_numbers(add);
  return result;
}

// The relative error that n sums in the accumulation type of T may have, and the last rounding.
template <typename T>
long double tolerance(size_t n) {
  const long double inner = std::is_same_v<T, double> ? 0x1p-53L : 0x1p-24L;
  return kIsFloat<T> ? ulp<T>() / 2 + inner * static_cast<long double>(64 + n / 64) : 0;
}

TEST(Reduce, WholeTensors) {
  for_numbers([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    for (const size_t n : {1u, 2u, 63u, 64u, 65u, 1000u, 16384u, 16385u, 100001u}) {
      const auto a = random_values<T>(n, static_cast<unsigned>(n), 1, 100);
      const Tensor x = make(a, {static_cast<int64_t>(n)});
      long double total = 0, least = wide(a[0]), most = wide(a[0]);
      for (const T& value : a) {
        total += wide(value);
        least = std::min(least, wide(value));
        most = std::max(most, wide(value));
      }
      const Tensor s = value_of(sum(executor(), x));
      EXPECT_EQ(s.type(), sum_type(dtype_of<T>()));
      EXPECT_EQ(s.rank(), 0u);
      // A sum past the largest f16 is infinite, as it should be.
      const long double got = wide_elements(s)[0];
      if (std::is_same_v<T, Half> && total > 65519)
        EXPECT_TRUE(std::isinf(got));
      else
        EXPECT_LE(std::fabs(got - total), tolerance<T>(n) * total) << n;
      const Tensor m = value_of(mean(executor(), x));
      EXPECT_EQ(m.type(), mean_type(dtype_of<T>()));
      const long double average = total / static_cast<long double>(n);
      EXPECT_LE(std::fabs(wide_elements(m)[0] - average),
                std::max(tolerance<T>(n), 0x1p-50L) * average)
          << n;
      EXPECT_EQ(wide_elements(value_of(reduce_min(executor(), x)))[0], least);
      EXPECT_EQ(wide_elements(value_of(reduce_max(executor(), x)))[0], most);
    }
  });
}

TEST(Reduce, SomeAxesOfAnyLayout) {
  for_numbers([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    const Dims dims = {3, 4, 5};
    const auto a = random_values<T>(60, 8, 0, 20);
    for (int layout = 0; layout < 4; ++layout) {
      const Tensor x = make_strided(a, dims, layout);
      const auto middle = wide_elements(value_of(sum(executor(), x, {{1}})));
      const auto outer = wide_elements(value_of(reduce_max(executor(), x, {{0, -1}, true})));
      ASSERT_EQ(middle.size(), 15u);
      ASSERT_EQ(outer.size(), 4u);
      EXPECT_EQ(value_of(reduce_max(executor(), x, {{0, -1}, true})).dims(), (Dims{1, 4, 1}));
      for (size_t i = 0; i < 3; ++i)
        for (size_t k = 0; k < 5; ++k) {
          long double want = 0;
          for (size_t j = 0; j < 4; ++j) want += wide(a[(i * 4 + j) * 5 + k]);
          EXPECT_LE(std::fabs(middle[i * 5 + k] - want), tolerance<T>(4) * want);
        }
      for (size_t j = 0; j < 4; ++j) {
        long double want = 0;
        for (size_t i = 0; i < 3; ++i)
          for (size_t k = 0; k < 5; ++k) want = std::max(want, wide(a[(i * 4 + j) * 5 + k]));
        EXPECT_EQ(outer[j], want);
      }
    }
  });
}

TEST(Reduce, IntoItsOwnMemory) {
  const auto a = random_values<float>(6000, 3, -1, 1);
  const Tensor want = value_of(sum(executor(), make(a, {3000, 2}), {{1}}));
  const Tensor x = make(a, {3000, 2});
  const Tensor out = value_of(value_of(x.reshape({6000})).narrow(0, 1, 3000));
  EXPECT_OK(sum(executor(), x, {{1}}, out));
  EXPECT_EQ(value_of(out.to_vector<float>()), value_of(want.to_vector<float>()));
}

TEST(Reduce, NothingAndNotANumber) {
  const Tensor none = make<float>({}, {0});
  EXPECT_EQ(wide_elements(value_of(sum(executor(), none)))[0], 0);
  EXPECT_TRUE(std::isnan(wide_elements(value_of(mean(executor(), none)))[0]));
  EXPECT_REFUSED(invalid_argument, "over no elements", reduce_min(executor(), none));
  EXPECT_EQ(value_of(sum(executor(), make<float>({}, {3, 0}), {{1}})).dims(), (Dims{3}));
  EXPECT_EQ(value_of(reduce_max(executor(), make<float>({}, {0, 3}), {{1}})).element_count(), 0);
  for (const size_t at : {0u, 70u, 299u}) {
    std::vector<double> a(300, 1.0);
    a[at] = std::nan("");
    EXPECT_TRUE(std::isnan(wide_elements(value_of(reduce_min(executor(), make(a, {300}))))[0]));
    EXPECT_TRUE(std::isnan(wide_elements(value_of(reduce_max(executor(), make(a, {300}))))[0]));
    a[at] = -std::numeric_limits<double>::infinity();
    EXPECT_EQ(wide_elements(value_of(reduce_min(executor(), make(a, {300}))))[0], a[at]);
  }
  EXPECT_REFUSED(out_of_range, "sum: there is no axis 1", sum(executor(), none, {{1}}));
  EXPECT_REFUSED(invalid_argument, "is given twice", sum(executor(), none, {{0, -1}}));
  EXPECT_REFUSED(unsupported, "sum of bool",
                 sum(executor(), value_of(executor().empty(DType::boolean, {1}))));
  EXPECT_REFUSED(
      type_mismatch, "not i64",
      sum(executor(), make<int8_t>({1}, {1}), {}, value_of(executor().empty(DType::i8, {}))));
}

TEST(Reduce, IntegerSumsAreWideAndWrap) {
  EXPECT_EQ(
      wide_elements(value_of(sum(executor(), make(std::vector<int8_t>(1000, -128), {1000}))))[0],
      -128000);
  EXPECT_EQ(
      wide_elements(value_of(sum(executor(), make(std::vector<uint8_t>(1000, 255), {1000}))))[0],
      255000);
  const Tensor wrapped = value_of(sum(executor(), make<uint64_t>({~uint64_t{0}, 2}, {2})));
  EXPECT_EQ(value_of(wrapped.to_vector<uint64_t>())[0], 1u);
}

// The same bits on 1 thread and on 2, for sums, dot products and matrix products.
TEST(Determinism, ThreadsDoNotChangeBits) {
  ThreadPool pool(2);
  const auto on = [&](unsigned threads) {
    backends::CpuOptions options;
    options.threads = threads;
    options.pool = &pool;
    return Executor(
        std::shared_ptr<backends::Backend>(value_of(backends::CpuBackend::create(options))));
  };
  const Executor one = on(1), two = on(2);
  const size_t n = 3'000'017;
  const auto a = random_values<float>(n, 1, -1, 1), b = random_values<float>(n, 2, -1, 1);
  const auto results = [&](const Executor& e) {
    const Tensor x = value_of(e.tensor(std::span<const float>(a), {static_cast<int64_t>(n)}));
    const Tensor y = value_of(e.tensor(std::span<const float>(b), {static_cast<int64_t>(n)}));
    std::vector<float> all;
    const auto keep = [&](const Tensor& t) {
      for (float value : value_of(t.to_vector<float>())) all.push_back(value);
    };
    keep(value_of(sum(e, x)));
    keep(value_of(dot(e, x, y)));
    keep(value_of(mean(e, y)));
    const Tensor grid = value_of(value_of(x.narrow(0, 0, 300 * 1000)).reshape({300, 1000}));
    const Tensor other = value_of(value_of(y.narrow(0, 0, 1000 * 200)).reshape({1000, 200}));
    keep(value_of(gemm(e, grid, other)));
    keep(value_of(matvec(e, grid, value_of(y.narrow(0, 0, 1000)))));
    keep(value_of(sum(e, grid, {{0}})));
    keep(value_of(softmax(e, grid)));
    return all;
  };
  EXPECT_EQ(results(one), results(two));
}

// A row gives the same bits alone as among others.
TEST(Determinism, TheBatchDoesNotChangeARow) {
  const auto a = random_values<float>(50 * 20000, 4, -1, 1);
  const Tensor x = make(a, {50, 20000});
  const auto sums = value_of(value_of(sum(executor(), x, {{1}})).to_vector<float>());
  for (int64_t r : {0, 17, 49}) {
    const Tensor row = value_of(x.select(0, r));
    EXPECT_EQ(value_of(value_of(sum(executor(), row)).to_vector<float>())[0],
              sums[static_cast<size_t>(r)]);
  }
}

TEST(Softmax, AgainstLongDouble) {
  for_floats([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    for (const int64_t n : {1, 2, 15, 16, 17, 1000, 1025, 3000}) {
      const auto a = random_values<T>(static_cast<size_t>(3 * n), 6, -20, 20);
      const auto got =
          value_of(value_of(softmax(executor(), make(a, {3, n}))).template to_vector<T>());
      for (int64_t r = 0; r < 3; ++r) {
        long double most = -1e9L, total = 0;
        for (int64_t i = 0; i < n; ++i)
          most = std::max(most, wide(a[static_cast<size_t>(r * n + i)]));
        for (int64_t i = 0; i < n; ++i)
          total += std::exp(wide(a[static_cast<size_t>(r * n + i)]) - most);
        for (int64_t i = 0; i < n; ++i) {
          const auto at = static_cast<size_t>(r * n + i);
          // Rounding x - most costs up to half a unit of it, which exp turns into as many of its
          // own.
          const long double far = most - wide(a[at]);
          ASSERT_TRUE(near(got[at], std::exp(-far) / total, sizeof(T) == 2 ? 0.6L : 6 + far))
              << n << " " << i;
        }
      }
    }
  });
}

TEST(Softmax, AnyAxisAndSpecialRows) {
  const auto a = random_values<float>(60, 6, -3, 3);
  for (int layout = 0; layout < 4; ++layout) {
    const Tensor x = make_strided(a, {3, 4, 5}, layout);
    for (int64_t axis = -3; axis < 3; ++axis) {
      const Tensor out = value_of(softmax(executor(), x, axis));
      for (float total : value_of(value_of(sum(executor(), out, {{axis}})).to_vector<float>()))
        EXPECT_NEAR(total, 1, 1e-6);
      const Tensor turned = value_of(softmax(executor(), value_of(x.transpose(axis, -1))));
      EXPECT_EQ(value_of(value_of(turned.transpose(axis, -1)).to_vector<float>()),
                value_of(out.to_vector<float>()));
    }
    const Tensor in_place = make_strided(a, {3, 4, 5}, layout);
    EXPECT_OK(softmax(executor(), in_place, 1, in_place));
    EXPECT_EQ(value_of(in_place.to_vector<float>()),
              value_of(value_of(softmax(executor(), x, 1)).to_vector<float>()));
  }
  const float inf = std::numeric_limits<float>::infinity();
  const auto far =
      value_of(value_of(softmax(executor(), make<float>({-inf, 1e30f, 1e30f, -1e30f}, {4})))
                   .to_vector<float>());
  EXPECT_EQ(far, (std::vector<float>{0, 0.5f, 0.5f, 0}));
  for (float v : value_of(
           value_of(softmax(executor(), make<float>({1, std::nanf("")}, {2}))).to_vector<float>()))
    EXPECT_TRUE(std::isnan(v));
  EXPECT_EQ(value_of(softmax(executor(), make<float>({}, {0, 3}))).element_count(), 0);
  EXPECT_REFUSED(unsupported, "softmax of i32", softmax(executor(), make<int32_t>({1}, {1})));
  EXPECT_REFUSED(out_of_range, "no axis 1", softmax(executor(), make<float>({1}, {1}), 1));
}

TEST(Loss, AgainstLongDouble) {
  for_floats([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    const size_t rows = 37, columns = 11, n = rows * columns;
    const auto a = random_values<T>(n, 1, -4, 4), b = random_values<T>(n, 2, -4, 4);
    const auto p = random_values<T>(n, 3, 0.01, 0.99), t = random_values<T>(n, 4, 0, 1);
    long double squares = 0, binary = 0, by_class = 0, by_distribution = 0;
    std::vector<int64_t> classes(rows);
    std::vector<int32_t> narrow_classes(rows);
    for (size_t i = 0; i < n; ++i) {
      squares += (wide(a[i]) - wide(b[i])) * (wide(a[i]) - wide(b[i]));
      binary -= wide(t[i]) * std::log(wide(p[i])) + (1 - wide(t[i])) * std::log(1 - wide(p[i]));
    }
    for (size_t r = 0; r < rows; ++r) {
      classes[r] = static_cast<int64_t>(r * 7 % columns);
      narrow_classes[r] = static_cast<int32_t>(classes[r]);
      long double total = 0;
      for (size_t c = 0; c < columns; ++c) total += std::exp(wide(a[r * columns + c]));
      by_class += std::log(total) - wide(a[r * columns + static_cast<size_t>(classes[r])]);
      for (size_t c = 0; c < columns; ++c)
        by_distribution += wide(t[r * columns + c]) * (std::log(total) - wide(a[r * columns + c]));
    }
    const Dims dims = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    for (int layout = 0; layout < 3; ++layout) {
      const Tensor x = make_strided(a, dims, layout), y = make_strided(b, dims, 2 - layout);
      const auto one = [](const Tensor& loss) { return value_of(loss.to_vector<T>())[0]; };
      const long double ulps = sizeof(T) == 2 ? 0.6L : 16;
      EXPECT_TRUE(near(one(value_of(mse(executor(), x, y))), squares / n, ulps));
      EXPECT_TRUE(near(one(value_of(binary_cross_entropy(executor(), make_strided(p, dims, layout),
                                                         make(t, dims)))),
                       binary / n, ulps));
      EXPECT_TRUE(near(
          one(value_of(cross_entropy(executor(), x, make(classes, {static_cast<int64_t>(rows)})))),
          by_class / rows, ulps));
      EXPECT_TRUE(near(one(value_of(cross_entropy(
                           executor(), x, make(narrow_classes, {static_cast<int64_t>(rows)})))),
                       by_class / rows, ulps));
      EXPECT_TRUE(near(one(value_of(cross_entropy(executor(), x, make_strided(t, dims, layout)))),
                       by_distribution / rows, ulps));
    }
  });
  // Certain and wrong: held at 100, not infinite.
  const Tensor p = make<float>({0, 1}, {2}), t = make<float>({1, 0}, {2});
  EXPECT_EQ(value_of(value_of(binary_cross_entropy(executor(), p, t)).to_vector<float>())[0], 100);
}

TEST(Loss, RefusesWhatDoesNotGoTogether) {
  const Tensor x = make<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_REFUSED(shape_mismatch, "the shapes differ", mse(executor(), x, make<float>({1, 2}, {2})));
  EXPECT_REFUSED(unsupported, "squared_difference of i32",
                 mse(executor(), make<int32_t>({1}, {1}), make<int32_t>({1}, {1})));
  EXPECT_REFUSED(out_of_range, "target 2 of row 1 is no class of 0 to 1",
                 cross_entropy(executor(), x, make<int64_t>({0, 2}, {2})));
  EXPECT_REFUSED(out_of_range, "target -1 of row 0",
                 cross_entropy(executor(), x, make<int32_t>({-1, 0}, {2})));
  EXPECT_REFUSED(shape_mismatch, "targets must be of shape [2]",
                 cross_entropy(executor(), x, make<int64_t>({0}, {1})));
  EXPECT_REFUSED(type_mismatch, "targets are classes",
                 cross_entropy(executor(), x, make<uint8_t>({0, 1}, {2})));
}

template <typename T>
void check_gemm(int64_t m, int64_t n, int64_t k, int layout) {
  const bool is_signed = kIsFloat<T> || std::is_signed_v<T>;
  const auto a = random_values<T>(static_cast<size_t>(m * k), 1, is_signed ? -2 : 0, 3);
  const auto b = random_values<T>(static_cast<size_t>(k * n), 2, is_signed ? -2 : 0, 3);
  const Tensor out = value_of(
      gemm(executor(), make_strided(a, {m, k}, layout), make_strided(b, {k, n}, (layout + 1) % 4)));
  const auto got = value_of(out.to_vector<T>());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      long double want = 0, size = 0;
      for (int64_t p = 0; p < k; ++p) {
        const long double term =
            wide(a[static_cast<size_t>(i * k + p)]) * wide(b[static_cast<size_t>(p * n + j)]);
        want += term;
        size += std::fabs(term);
      }
      const T value = got[static_cast<size_t>(i * n + j)];
      if constexpr (kIsFloat<T>) {
        const long double inner = std::is_same_v<T, double> ? 0x1p-53L : 0x1p-24L;
        ASSERT_LE(
            std::fabs(wide(value) - want),
            ulp<T>() / 2 * std::fabs(want) + inner * static_cast<long double>(k) * size + 1e-300L)
            << m << "x" << n << "x" << k << " at " << i << ", " << j;
      } else {
        ASSERT_EQ(value, static_cast<T>(static_cast<int64_t>(want))) << m << "x" << n << "x" << k;
      }
    }
}

TEST(Gemm, EveryTypeAndLayout) {
  for_numbers([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    for (int layout = 0; layout < 4; ++layout) {
      check_gemm<T>(1, 1, 1, layout);
      check_gemm<T>(5, 7, 3, layout);
      check_gemm<T>(13, 33, 17, layout);
    }
    check_gemm<T>(0, 4, 3, 0);
    check_gemm<T>(4, 3, 0, 0);
    check_gemm<T>(100, 70, 300, 0);
  });
  check_gemm<float>(97, 129, 513, 1);
  check_gemm<float>(2, 2100, 40, 0);
  check_gemm<double>(97, 65, 257, 2);
}

TEST(Gemm, ScalesAndAccumulates) {
  for_numbers([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    const auto a = random_values<T>(6, 1, 0, 4), b = random_values<T>(8, 2, 0, 4),
               c = random_values<T>(12, 3, 0, 4);
    for (int layout = 0; layout < 4; ++layout) {
      const Tensor out = make_strided(c, {3, 4}, layout);
      EXPECT_OK(gemm(executor(), make(a, {3, 2}), make(b, {2, 4}), out, 2, 3));
      const auto got = value_of(out.to_vector<T>());
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 4; ++j) {
          const long double want =
              2 * (wide(a[i * 2]) * wide(b[j]) + wide(a[i * 2 + 1]) * wide(b[4 + j])) +
              3 * wide(c[i * 4 + j]);
          ASSERT_TRUE(near(got[i * 4 + j], want, sizeof(T) == 2 ? 0.51L : 4)) << layout;
        }
    }
  });
  // With beta = 0 what was there does not matter, not even a not-a-number.
  const Tensor out = make(std::vector<float>(1, std::nanf("")), {1, 1});
  EXPECT_OK(gemm(executor(), make<float>({2}, {1, 1}), make<float>({3}, {1, 1}), out));
  EXPECT_EQ(value_of(out.to_vector<float>())[0], 6);
  // An output that is also an input.
  const Tensor square = make<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_OK(gemm(executor(), square, square, square));
  EXPECT_EQ(value_of(square.to_vector<float>()), (std::vector<float>{7, 10, 15, 22}));
}

TEST(Matvec, EveryTypeAndLayout) {
  for_numbers([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    for (const auto& [m, k] : {std::pair{1, 1}, {5, 70}, {130, 65}, {3, 0}, {0, 3}, {70, 9000}}) {
      const auto a = random_values<T>(static_cast<size_t>(m * k), 1, 0, 3),
                 x = random_values<T>(static_cast<size_t>(k), 2, 0, 3);
      for (int layout = 0; layout < 4; ++layout) {
        const auto got = value_of(value_of(matvec(executor(), make_strided(a, {m, k}, layout),
                                                  make_strided(x, {k}, layout)))
                                      .template to_vector<T>());
        for (int i = 0; i < m; ++i) {
          long double want = 0;
          for (int p = 0; p < k; ++p)
            want += wide(a[static_cast<size_t>(i * k + p)]) * wide(x[static_cast<size_t>(p)]);
          if constexpr (kIsFloat<T>) {
            ASSERT_LE(std::fabs(wide(got[static_cast<size_t>(i)]) - want),
                      tolerance<T>(static_cast<size_t>(k)) * want);
          } else {
            ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<T>(static_cast<int64_t>(want)));
          }
        }
      }
    }
  });
}

TEST(Dot, EveryTypeAndLayout) {
  for_numbers([]<typename T>(T) {
    SCOPED_TRACE(name_of(dtype_of<T>()));
    for (const int64_t n : {0, 1, 63, 64, 65, 5000, 40001}) {
      const auto a = random_values<T>(static_cast<size_t>(n), 1, 0, 2),
                 b = random_values<T>(static_cast<size_t>(n), 2, 0, 2);
      long double want = 0;
      for (size_t i = 0; i < a.size(); ++i) want += wide(a[i]) * wide(b[i]);
      for (int layout : {0, 2, 3}) {
        const Tensor out =
            value_of(dot(executor(), make_strided(a, {n}, layout), make_strided(b, {n}, layout)));
        EXPECT_LE(std::fabs(wide_elements(out)[0] - want),
                  tolerance<T>(static_cast<size_t>(n)) * want)
            << n;
      }
    }
  });
}

TEST(Linalg, RefusesWhatDoesNotGoTogether) {
  const Tensor a = make<float>({1, 2, 3, 4, 5, 6}, {2, 3}), x = make<float>({1, 2}, {2});
  EXPECT_REFUSED(shape_mismatch, "gemm of f32[2, 3] and f32[2, 3]", gemm(executor(), a, a));
  EXPECT_REFUSED(shape_mismatch, "2 and 1 dimensions", matvec(executor(), a, x));
  EXPECT_REFUSED(shape_mismatch, "1 and 1 dimensions", dot(executor(), a, x));
  EXPECT_REFUSED(type_mismatch, "the types differ",
                 gemm(executor(), a, make<double>({1, 2, 3}, {3, 1})));
  EXPECT_REFUSED(shape_mismatch, "not of shape [2, 2]",
                 gemm(executor(), a, value_of(a.transpose()), a));
  EXPECT_REFUSED(unsupported, "gemm of bool",
                 gemm(executor(), value_of(executor().empty(DType::boolean, {1, 1})),
                      value_of(executor().empty(DType::boolean, {1, 1}))));
}

}  // namespace
}  // namespace hologram::runtime::ops
