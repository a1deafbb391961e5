// The DCT, the Hadamard transform and the SVD against their definitions in long double.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>

#include "holotensor/classical/dct.h"
#include "holotensor/classical/hadamard.h"
#include "holotensor/classical/low_rank.h"
#include "holotensor/classical/seeded_random.h"

namespace hologram::holotensor {
namespace {

std::vector<float> gaussian(size_t count, uint64_t seed = 1) {
  SeededRandom random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// One orthonormal DCT-II by its definition.
std::vector<long double> dct_by_definition(std::span<const float> x) {
  const size_t n = x.size();
  std::vector<long double> out(n);
  for (size_t k = 0; k < n; ++k) {
    long double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const long double angle = std::numbers::pi_v<long double> * (2 * i + 1) * k / (2 * n);
      sum += x[i] * std::cos(angle);
    }
    out[k] = sum * std::sqrt((k == 0 ? 1.0L : 2.0L) / n);
  }
  return out;
}

TEST(Dct, IsTheOrthonormalDctAtEverySmoothLength) {
  for (const size_t n : {1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 25, 27, 30, 64, 100, 243, 625}) {
    ASSERT_EQ(dct_segments(n).size(), 1u) << n;
    const auto source = gaussian(n, n);
    const auto expected = dct_by_definition(source);
    auto values = source;
    ASSERT_TRUE(dct_2d(values, 1, n, DctDirection::forward));
    for (size_t k = 0; k < n; ++k) EXPECT_NEAR(values[k], expected[k], 4e-6) << n << " at " << k;
    auto column = source;
    ASSERT_TRUE(dct_2d(column, n, 1, DctDirection::forward));
    EXPECT_EQ(column, values) << "a column is transformed as a row is";
    ASSERT_TRUE(dct_2d(values, 1, n, DctDirection::inverse));
    for (size_t k = 0; k < n; ++k) EXPECT_NEAR(values[k], source[k], 4e-6) << n << " at " << k;
  }
}

TEST(Dct, CutsOtherLengthsIntoSmoothSegments) {
  for (const size_t n : {7, 11, 77, 1733, 4097, 8191, 50257, 151936}) {
    const auto parts = dct_segments(n);
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), size_t{0}), n);
    EXPECT_LE(parts.size(), n / kMaxDctSegment + 8);
    for (size_t part : parts) {
      EXPECT_LE(part, kMaxDctSegment);
      for (const size_t prime : {2, 3, 5}) {
        while (part % prime == 0) part /= prime;
      }
      EXPECT_EQ(part, 1u);
    }
  }
}

TEST(Dct, TwoDimensionsKeepTheEnergyAndComeBack) {
  for (const auto& [rows, columns] : {std::pair<size_t, size_t>{33, 77}, {128, 1733}, {5000, 3}}) {
    const auto source = gaussian(rows * columns);
    auto values = source;
    ASSERT_TRUE(dct_2d(values, rows, columns, DctDirection::forward));
    double before = 0, after = 0;
    for (const float v : source) before += double{v} * v;
    for (const float v : values) after += double{v} * v;
    EXPECT_NEAR(after / before, 1.0, 1e-6);
    ASSERT_TRUE(dct_2d(values, rows, columns, DctDirection::inverse));
    for (size_t i = 0; i < source.size(); ++i) ASSERT_NEAR(values[i], source[i], 1e-5);
  }
}

TEST(Dct, DoesNotDependOnTheNumberOfThreads) {
  const auto source = gaussian(200 * 300);
  ThreadPool one(1), three(3);
  auto a = source, b = source;
  ASSERT_TRUE(dct_2d(a, 200, 300, DctDirection::forward, one));
  ASSERT_TRUE(dct_2d(b, 200, 300, DctDirection::forward, three));
  EXPECT_EQ(a, b);
}

TEST(Dct, RefusesAWrongSize) {
  std::vector<float> values(10);
  EXPECT_FALSE(dct_2d(values, 3, 4, DctDirection::forward));
  EXPECT_FALSE(dct_2d(values, SIZE_MAX / 2, 4, DctDirection::forward));
}

TEST(Hadamard, IsTheOrthonormalTransformAndItsOwnInverse) {
  for (size_t n = 1; n <= 1024; n *= 2) {
    const auto source = gaussian(n, n);
    auto values = source;
    hadamard(values);
    for (size_t k = 0; k < n; ++k) {
      long double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += std::popcount(i & k) % 2 ? -source[i] : source[i];
      EXPECT_NEAR(values[k], sum / std::sqrt(static_cast<long double>(n)), 2e-6);
    }
    hadamard(values);
    for (size_t i = 0; i < n; ++i) EXPECT_NEAR(values[i], source[i], 2e-6);
  }
}

// A matrix with known singular values: products of planted rank-one parts on DCT vectors.
std::vector<float> planted(size_t rows, size_t columns, std::span<const float> values) {
  std::vector<float> matrix(rows * columns);
  for (size_t k = 0; k < values.size(); ++k) matrix[k * columns + k] = values[k];
  EXPECT_TRUE(dct_2d(matrix, rows, columns, DctDirection::inverse));
  return matrix;
}

TEST(LowRank, FindsPlantedSingularValues) {
  std::vector<float> values(40);
  for (size_t k = 0; k < values.size(); ++k) values[k] = 100.0f * std::pow(0.8f, k);
  // Both the full and the randomised decomposition, both ways round.
  for (const auto& [rows, columns] : {std::pair<size_t, size_t>{64, 200}, {600, 500}, {400, 900}}) {
    const auto matrix = planted(rows, columns, values);
    const auto factors = low_rank_factors(matrix, rows, columns, {.rank = 40});
    ASSERT_TRUE(factors) << factors.error().to_string();
    ASSERT_EQ(factors->rank, 40u);
    for (size_t k = 0; k < 40; ++k) {
      EXPECT_NEAR(factors->values[k], values[k], 1e-4 * values[0]) << rows << " value " << k;
    }
    double error = 0;
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        double sum = matrix[i * columns + j];
        for (size_t k = 0; k < 40; ++k) {
          sum -= double{factors->values[k]} * factors->left[k * rows + i] *
                 factors->right[k * columns + j];
        }
        error = std::max(error, std::abs(sum));
      }
    }
    EXPECT_LT(error, 1e-4);
  }
}

TEST(LowRank, TakesSmallAndEmptyMatricesAndRefusesBadOnes) {
  EXPECT_EQ(low_rank_factors({}, 0, 5, {})->rank, 0u);
  const float one[] = {3};
  const auto factors = low_rank_factors(one, 1, 1, {});
  EXPECT_NEAR(factors->values[0] * factors->left[0] * factors->right[0], 3, 1e-6);
  EXPECT_FALSE(low_rank_factors(one, 2, 3, {}));
  const float bad[] = {1, std::nanf("")};
  EXPECT_EQ(low_rank_factors(bad, 1, 2, {}).error().code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace hologram::holotensor
