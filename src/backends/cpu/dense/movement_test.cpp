#include "backends/cpu/dense/movement.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/dense/testing.h"
#include "backends/cpu/dense/transpose.h"

namespace hologram::backends::dense {
namespace {

template <typename T>
void expect_permuted(const std::vector<size_t>& dims, const std::vector<size_t>& order) {
  const size_t total = std::accumulate(dims.begin(), dims.end(), size_t{1}, std::multiplies<>());
  std::vector<T> x(total), y(total);
  for (size_t i = 0; i < total; ++i) x[i] = T(i * 2654435761u >> 3);
  permute(dims, order, sizeof(T), x.data(), y.data(), ThreadPool::shared());
  std::vector<size_t> index(dims.size());
  for (size_t n = 0; n < total; ++n) {
    size_t rest = n;
    for (size_t i = dims.size(); i-- > 0;) {
      index[order[i]] = rest % dims[order[i]];
      rest /= dims[order[i]];
    }
    size_t at = 0;
    for (size_t d = 0; d < dims.size(); ++d) at = at * dims[d] + index[d];
    ASSERT_EQ(y[n], x[at]) << "element " << n;
  }
}

TEST(Movement, EveryPermutationOfFourDimensions) {
  for_each_level([] {
    for (const std::vector<size_t>& dims : std::vector<std::vector<size_t>>{
             {3, 4, 5, 6}, {1, 17, 1, 33}, {2, 70, 3, 65}, {5, 1, 1, 1}}) {
      std::vector<size_t> order = {0, 1, 2, 3};
      do {
        expect_permuted<float>(dims, order);
        expect_permuted<uint8_t>(dims, order);
        expect_permuted<uint16_t>(dims, order);
        expect_permuted<uint64_t>(dims, order);
        if (::testing::Test::HasFatalFailure()) return;
      } while (std::next_permutation(order.begin(), order.end()));
    }
    expect_permuted<float>({}, {});
    expect_permuted<float>({0, 3}, {1, 0});
  });
}

TEST(Movement, TransposeOfMatrices) {
  for_each_level([] {
    for (size_t rows : {1, 3, 4, 15, 64, 100})
      for (size_t columns : {1, 2, 7, 16, 130}) {
        const std::vector<float> x = random_values(2 * rows * columns, 1);
        std::vector<float> y(x.size());
        transpose(2, rows, columns, x.data(), y.data(), ThreadPool::shared());
        for (size_t m = 0; m < 2; ++m)
          for (size_t i = 0; i < rows; ++i)
            for (size_t j = 0; j < columns; ++j)
              ASSERT_EQ(y[(m * columns + j) * rows + i], x[(m * rows + i) * columns + j]);
      }
  });
}

TEST(Movement, CopiesRunsAndGathersRows) {
  const std::vector<float> x = random_values(400000, 1);
  std::vector<float> y(x.size() * 2, -1.0f);
  // Concat along the second of two dimensions.
  copy_runs(4, 100000 * 4, x.data(), 100000 * 4, y.data() + 7, 200000 * 4, ThreadPool::shared());
  for (size_t i : {0, 1, 2, 3}) {
    EXPECT_EQ(0, std::memcmp(&y[7 + i * 200000], &x[i * 100000], 400000));
    EXPECT_EQ(y[7 + i * 200000 + 100000], -1.0f);
  }
  const std::vector<int64_t> indices = {3, -1, 0, -4};
  std::vector<float> z(2 * 4 * 5);
  ASSERT_TRUE(gather_rows(2, 4, 20, x.data(), indices, z.data(), ThreadPool::shared()));
  const size_t rows[] = {3, 3, 0, 0};
  for (size_t o = 0; o < 2; ++o)
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(0, std::memcmp(&z[(o * 4 + i) * 5], &x[(o * 4 + rows[i]) * 5], 20));
  const std::vector<int64_t> bad = {4}, worse = {-5};
  EXPECT_FALSE(gather_rows(2, 4, 20, x.data(), bad, z.data(), ThreadPool::shared()));
  EXPECT_FALSE(gather_rows(2, 4, 20, x.data(), worse, z.data(), ThreadPool::shared()));
}

}  // namespace
}  // namespace hologram::backends::dense
