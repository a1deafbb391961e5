#include <bit>
#include <cstring>
#include <limits>

#include "backends/cpu/dense/activate.h"
#include "backends/cpu/dense/testing.h"

namespace hologram::backends::dense {
namespace {

// Distance of `got` from the true value, in units in the last place of the true value.
double ulps(float got, double truth) {
  const auto rounded = static_cast<float>(truth);
  if (std::isnan(truth)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  const float magnitude = std::max(std::abs(rounded), 1.17549435e-38f);
  const double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::abs(got - truth) / unit;
}

// Every 997th float of all that exist.
double largest_error(Function function, double (*truth)(double), float low, float high) {
  double largest = 0;
  std::vector<float> x, y(1 << 16);
  const auto flush = [&] {
    apply(function, x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], truth(x[i]));
      if (error > largest) largest = error;
    }
    x.clear();
  };
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 997) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(value >= low && value <= high)) continue;
    x.push_back(value);
    if (x.size() == y.size()) flush();
  }
  flush();
  return largest;
}

TEST(Math, ErrorsOverAllOfF32) {
  for_each_level([] {
    EXPECT_LE(largest_error(
                  Function::exp, [](double x) { return std::exp(x); }, -HUGE_VALF, HUGE_VALF),
              1.0 + 0.5);
    EXPECT_LE(largest_error(
                  Function::log, [](double x) { return std::log(x); }, 0.0f, HUGE_VALF),
              2.0);
    EXPECT_LE(largest_error(
                  Function::tanh, [](double x) { return std::tanh(x); }, -HUGE_VALF, HUGE_VALF),
              3.0);
    EXPECT_LE(largest_error(
                  Function::erf, [](double x) { return std::erf(x); }, -HUGE_VALF, HUGE_VALF),
              3.0);
    EXPECT_LE(
        largest_error(
            Function::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -87.0f, HUGE_VALF),
        3.0);
  });
}

TEST(Math, ErrorsOfSilu) {
  for_each_level([] {
    std::vector<float> x, y;
    for (float value = -87.0f; value < 120.0f; value += 0.00371f) x.push_back(value);
    y.resize(x.size());
    activate(Activation::silu, 1.0f, 0.0f, x.data(), y.data(), x.size(), ThreadPool::shared());
    double largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double right = x[i] / (1 + std::exp(-static_cast<double>(x[i])));
      if (std::abs(right) < 1e-36) continue;
      largest = std::max(largest, std::abs(y[i] - right) / std::abs(right));
    }
    EXPECT_LE(largest, 3 * 1.2e-7);
  });
}

// Errors that all results share add up in the sums that follow.
// Results are rounded once where nothing is cut off, and infinity stays what it is.
TEST(Math, HardSwishIsRoundedOnce) {
  std::vector<float> x = random_values(100000, 4, -2.9f, 2.9f);
  x.push_back(std::numeric_limits<float>::infinity());
  x.push_back(2e30f);
  std::vector<float> y(x.size());
  for_each_level([&] {
    activate(Activation::hard_swish, kSixth, kSixthRest, x.data(), y.data(), x.size(),
             ThreadPool::shared());
    const double limit = is_fused() ? 6e-8 : 1.8e-7;
    for (size_t i = 0; i + 2 < x.size(); ++i) {
      const double wanted = static_cast<double>(static_cast<long double>(x[i]) * (x[i] + 3.0L) / 6);
      ASSERT_NEAR(y[i], wanted, limit * std::abs(wanted)) << x[i];
    }
    EXPECT_EQ(y[x.size() - 2], std::numeric_limits<float>::infinity());
    EXPECT_FLOAT_EQ(y[x.size() - 1], 2e30f);
  });
}

TEST(Math, ErrorsOfHardSwishAverageOut) {
  for_each_level([] {
    std::vector<float> x, y;
    for (float value = 3.0f; value < 40.0f; value += 0.00371f) x.push_back(value);
    y.resize(x.size());
    activate(Activation::hard_swish, 0, 0, x.data(), y.data(), x.size(), ThreadPool::shared());
    EXPECT_EQ(x, y);
    activate(Activation::hard_swish, kSixth, kSixthRest, x.data(), y.data(), x.size(),
             ThreadPool::shared());
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(y[i] / double{x[i]}, 1, 1.8e-7);
      sum += y[i] / double{x[i]} - 1;
    }
    // SSE4 has no fused multiply-add: the second part of a sixth is rounded with the first.
    const bool fused = is_fused();
    EXPECT_LE(std::abs(sum) / static_cast<double>(x.size()), fused ? 4e-9 : 3e-8);
    x.clear();
    for (float value = -4.0f; value < 4.0f; value += 0.00371f) x.push_back(value);
    y.resize(x.size());
    for (const float slope : {1.0f / 6, 0.1666667f, 0.2f}) {
      activate(Activation::hard_swish, slope, 0, x.data(), y.data(), x.size(),
               ThreadPool::shared());
      for (size_t i = 0; i < x.size(); ++i) {
        const double right = x[i] * std::clamp(double{slope} * x[i] + 0.5, 0.0, 1.0);
        ASSERT_NEAR(y[i], right, 3e-7) << x[i];
      }
    }
    activate(Activation::hard_swish, kSixth, kSixthRest, x.data(), y.data(), x.size(),
             ThreadPool::shared());
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], x[i] * std::clamp(x[i] / 6.0 + 0.5, 0.0, 1.0), 5e-7) << x[i];
  });
}

TEST(Math, SpecialValues) {
  for_each_level([] {
    const std::vector<float> x = {0.0f, -0.0f, HUGE_VALF, -HUGE_VALF, NAN, -1.0f, 1e-42f};
    std::vector<float> y(x.size());
    const auto check = [&](Function f, std::vector<float> right) {
      apply(f, x.data(), y.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(right[i])) {
          EXPECT_TRUE(std::isnan(y[i])) << int(f) << " of " << x[i];
        } else {
          EXPECT_FLOAT_EQ(y[i], right[i]) << int(f) << " of " << x[i];
          EXPECT_EQ(std::signbit(y[i]), std::signbit(right[i])) << int(f) << " of " << x[i];
        }
      }
    };
    check(Function::exp, {1, 1, HUGE_VALF, 0, NAN, 0.36787944f, 1});
    check(Function::log, {-HUGE_VALF, -HUGE_VALF, HUGE_VALF, NAN, NAN, NAN, std::log(1e-42f)});
    check(Function::tanh, {0, -0.0f, 1, -1, NAN, -0.76159416f, 1e-42f});
    check(Function::erf, {0, -0.0f, 1, -1, NAN, -0.84270079f, std::erf(1e-42f)});
  });
}

TEST(Math, NearGelu) {
  for_each_level([] {
    std::vector<float> x, y;
    for (int i = -12000; i <= 12000; ++i) x.push_back(static_cast<float>(i) / 1000.0f);
    y.resize(x.size());
    activate(Activation::gelu_near, 0, 0, x.data(), y.data(), x.size(), ThreadPool::shared());
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], inner = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
      ASSERT_NEAR(y[i], v / 2 * (1 + std::erf(v / std::sqrt(2.0))), 1.95e-4) << v;
      ASSERT_NEAR(y[i], v / 2 * (1 + std::tanh(inner)), 5.05e-4) << v;
    }
    const float far[] = {100.0f, -100.0f, NAN};
    activate(Activation::gelu_near, 0, 0, far, y.data(), 3, ThreadPool::shared());
    EXPECT_NEAR(y[0], 100.0f, 5e-5);
    EXPECT_NEAR(y[1], 0.0f, 5e-5);
    EXPECT_TRUE(std::isnan(y[2]));
  });
}

TEST(Math, CloseGelu) {
  for_each_level([] {
    std::vector<float> x, y;
    for (int i = -12000; i <= 12000; ++i) x.push_back(static_cast<float>(i) / 1000.0f);
    y.resize(x.size());
    activate(Activation::gelu_close, 0, 0, x.data(), y.data(), x.size(), ThreadPool::shared());
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i], right = v / 2 * std::erfc(-v / std::sqrt(2.0));
      ASSERT_NEAR(y[i], right, 1.2e-6 + 1e-7 * std::abs(v)) << v;
      if (std::abs(v) <= 4.5) {
        ASSERT_NEAR(y[i], right, 1e-4 * std::abs(right)) << v;
      }
    }
    const float far[] = {100.0f, -100.0f, NAN};
    activate(Activation::gelu_close, 0, 0, far, y.data(), 3, ThreadPool::shared());
    EXPECT_NEAR(y[0], 100.0f, 2e-5);
    EXPECT_NEAR(y[1], 0.0f, 2e-5);
    EXPECT_TRUE(std::isnan(y[2]));
  });
}

TEST(Math, ActivationsOfSpecialValues) {
  for_each_level([] {
    const float x[] = {NAN, HUGE_VALF, -HUGE_VALF, 100.0f, -100.0f};
    float y[5];
    const auto run = [&](Activation a) {
      const bool silu = a == Activation::silu, hard = a == Activation::hard_swish;
      activate(a, silu || hard ? 1.0f : -1.0f, hard ? 0 : 2.0f, x, y, 5, ThreadPool::shared());
    };
    for (Activation a : {Activation::relu, Activation::clip, Activation::sigmoid, Activation::tanh,
                         Activation::silu, Activation::gelu_erf, Activation::gelu_tanh,
                         Activation::softplus, Activation::hard_swish}) {
      run(a);
      EXPECT_TRUE(std::isnan(y[0])) << int(a);
    }
    run(Activation::relu);
    EXPECT_EQ(y[1], HUGE_VALF);
    EXPECT_EQ(y[2], 0.0f);
    run(Activation::hard_swish);
    EXPECT_EQ(y[1], HUGE_VALF);
    EXPECT_FLOAT_EQ(y[3], 100.0f);
    EXPECT_EQ(y[4], 0.0f);
    activate(Activation::hard_swish, kSixth, kSixthRest, x, y, 5, ThreadPool::shared());
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], HUGE_VALF);
    EXPECT_EQ(y[4], 0.0f);
    run(Activation::softplus);
    EXPECT_EQ(y[1], HUGE_VALF);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_FLOAT_EQ(y[3], 100.0f);
    EXPECT_NEAR(y[4], 3.783506e-44, 1e-44);
    run(Activation::gelu_erf);
    EXPECT_EQ(y[3], 100.0f);
    EXPECT_EQ(y[4], 0.0f);
  });
}

}  // namespace
}  // namespace hologram::backends::dense
