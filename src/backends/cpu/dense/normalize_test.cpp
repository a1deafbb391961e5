#include "backends/cpu/dense/normalize.h"

#include "backends/cpu/dense/reduce.h"
#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

TEST(Softmax, EveryLengthAndAxis) {
  for_each_level([] {
    for (size_t outer : {0, 1, 3, 40})
      for (size_t inner : {1, 2, 17, 65})
        for (size_t n : {0, 1, 2, 8, 15, 16, 17, 100, 1000}) {
          const std::vector<float> x = random_values(outer * n * inner, 1, -30.0f, 30.0f);
          std::vector<float> y(x.size()), z(x.size());
          softmax(outer, n, inner, x.data(), y.data(), ThreadPool::shared());
          log_softmax(outer, n, inner, x.data(), z.data(), ThreadPool::shared());
          for (size_t o = 0; o < outer; ++o)
            for (size_t i = 0; i < inner; ++i) {
              const auto at = [&](size_t k) { return (o * n + k) * inner + i; };
              long double peak = -HUGE_VAL, sum = 0;
              for (size_t k = 0; k < n; ++k) peak = std::max(peak, (long double)x[at(k)]);
              for (size_t k = 0; k < n; ++k) sum += std::exp((long double)x[at(k)] - peak);
              for (size_t k = 0; k < n; ++k) {
                const long double t = x[at(k)] - peak;
                ASSERT_NEAR(y[at(k)], double(std::exp(t) / sum),
                            5e-6 * double(std::exp(t) / sum) + 1e-37);
                ASSERT_NEAR(z[at(k)], double(t - std::log(sum)), 8e-6);
              }
            }
        }
  });
}

TEST(Softmax, InPlaceAndMasked) {
  std::vector<float> x = {1, -HUGE_VALF, 1, -HUGE_VALF};
  softmax(1, 4, 1, x.data(), x.data(), ThreadPool::shared());
  EXPECT_EQ(x, (std::vector<float>{0.5f, 0, 0.5f, 0}));
}

TEST(RowNorm, LayerAndRms) {
  for_each_level([] {
    for (size_t n : {1, 3, 16, 31, 768, 1000})
      for (int kind = 0; kind < 8; ++kind) {
        const size_t rows = 5;
        const bool rms = kind & 1, affine = kind & 2, residual = kind & 4;
        const std::vector<float> x = random_values(rows * n, 1, 3.0f, 9.0f),
                                 r = random_values(rows * n, 2), scale = random_values(n, 3),
                                 bias = random_values(n, 4);
        std::vector<float> y(rows * n), sum(rows * n), mean(rows), inverse(rows);
        RowNorm norm{.rows = rows,
                     .n = n,
                     .x = x.data(),
                     .epsilon = 1e-3f,
                     .rms = rms,
                     .y = y.data(),
                     .mean = mean.data(),
                     .inverse_deviation = inverse.data()};
        if (residual) {
          norm.residual = r.data();
          norm.sum = sum.data();
        }
        if (affine) {
          norm.scale = scale.data();
          norm.bias = bias.data();
        }
        row_norm(norm, ThreadPool::shared());
        for (size_t i = 0; i < rows; ++i) {
          std::vector<double> v(n);
          double m = 0, s = 0;
          for (size_t j = 0; j < n; ++j) {
            v[j] = x[i * n + j] + (residual ? double(r[i * n + j]) : 0.0);
            m += v[j] / double(n);
          }
          if (rms) m = 0;
          for (double value : v) s += (value - m) * (value - m) / double(n);
          const double inv = 1 / std::sqrt(s + double(1e-3f));
          EXPECT_NEAR(mean[i], m, 1e-5);
          EXPECT_NEAR(inverse[i], inv, 1e-5 * inv);
          for (size_t j = 0; j < n; ++j) {
            double right = (v[j] - m) * inv;
            if (affine) right = right * scale[j] + bias[j];
            ASSERT_NEAR(y[i * n + j], right, 2e-5) << n << " kind " << kind;
            if (residual) {
              ASSERT_FLOAT_EQ(sum[i * n + j], float(v[j]));
            }
          }
        }
      }
  });
}

TEST(GroupNorm, GroupsAndInstances) {
  for_each_level([] {
    for (size_t groups : {1, 2, 6}) {
      const size_t batch = 2, channels = 6, pixels = 35, per = channels / groups;
      const std::vector<float> x = random_values(batch * channels * pixels, 1, -2.0f, 5.0f),
                               scale = random_values(channels, 2),
                               bias = random_values(channels, 3);
      std::vector<float> y(x.size());
      group_norm({.batch = batch,
                  .channels = channels,
                  .pixels = pixels,
                  .groups = groups,
                  .x = x.data(),
                  .scale = scale.data(),
                  .bias = bias.data(),
                  .y = y.data()},
                 ThreadPool::shared());
      for (size_t g = 0; g < batch * groups; ++g) {
        double m = 0, s = 0;
        const size_t count = per * pixels, start = g * count;
        for (size_t i = 0; i < count; ++i) m += x[start + i] / double(count);
        for (size_t i = 0; i < count; ++i)
          s += (x[start + i] - m) * (x[start + i] - m) / double(count);
        for (size_t i = 0; i < count; ++i) {
          const size_t c = g % groups * per + i / pixels;
          ASSERT_NEAR(y[start + i], (x[start + i] - m) / std::sqrt(s + 1e-5) * scale[c] + bias[c],
                      1e-5);
        }
      }
    }
  });
}

TEST(Reduce, EveryReductionAndAxis) {
  for_each_level([] {
    for (size_t outer : {1, 3})
      for (size_t inner : {1, 3, 16, 70, 300})
        for (size_t n : {0, 1, 5, 16, 64, 133, 1000}) {
          const std::vector<float> x = random_values(outer * n * inner, 7, -1.1f, 1.1f);
          for (int kind = 0; kind <= int(Reduction::root_of_squares); ++kind) {
            std::vector<float> y(outer * inner, -77.0f);
            reduce(Reduction(kind), outer, n, inner, x.data(), y.data(), ThreadPool::shared());
            for (size_t o = 0; o < outer; ++o)
              for (size_t i = 0; i < inner; ++i) {
                double sum = 0, high = -HUGE_VAL, low = HUGE_VAL, product = 1, squares = 0, l1 = 0;
                for (size_t k = 0; k < n; ++k) {
                  const double v = x[(o * n + k) * inner + i];
                  sum += v;
                  high = std::max(high, v);
                  low = std::min(low, v);
                  product *= v;
                  squares += v * v;
                  l1 += std::abs(v);
                }
                const double right[] = {sum,     sum / double(n), high, low,
                                        product, squares,         l1,   std::sqrt(squares)};
                const float got = y[o * inner + i];
                if (std::isnan(right[kind])) {
                  ASSERT_TRUE(std::isnan(got));
                } else if (std::isinf(right[kind])) {
                  ASSERT_EQ(got, float(right[kind]));
                } else {
                  ASSERT_NEAR(got, right[kind],
                              2e-7 * double(n) + 1e-6 + 1e-6 * std::abs(right[kind]))
                      << kind << " n " << n;
                }
              }
          }
        }
  });
}

TEST(Reduce, NanWinsAndThreadsDoNotMatter) {
  for_each_level([] {
    std::vector<float> x = random_values(40 * 5000, 3);
    ThreadPool one(1), three(3);
    for (size_t inner : {1, 40}) {
      std::vector<float> a(40), b(40);
      reduce(Reduction::sum, 40 / inner, 5000, inner, x.data(), a.data(), one);
      reduce(Reduction::sum, 40 / inner, 5000, inner, x.data(), b.data(), three);
      EXPECT_EQ(a, b);
    }
    for (size_t place : {0, 9, 31, 99}) {
      std::vector<float> v(100, 1.0f);
      v[place] = NAN;
      float y;
      reduce(Reduction::max, 1, 100, 1, v.data(), &y, one);
      EXPECT_TRUE(std::isnan(y)) << place;
      reduce(Reduction::min, 1, 100, 1, v.data(), &y, one);
      EXPECT_TRUE(std::isnan(y)) << place;
    }
  });
}

}  // namespace
}  // namespace hologram::backends::dense
