// A transpose through tiles of shared memory.
#include <vector>

#include "example.h"

using namespace hologram;

int main() {
  constexpr int64_t kRows = 777, kColumns = 1234;
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto executor = example::must(runtime::Executor::create());
  const auto a =
      example::must(executor.tensor<float>(std::span<const float>(values), {kRows, kColumns}));
  const auto b = example::must(executor.empty(DType::f32, {kColumns, kRows}));
  example::must(executor.run(example::kernel("transpose"), a, b));
  const auto got = example::must(b.view<const float>());
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kColumns; ++c)
      example::expect(got[c * kRows + r] == values[r * kColumns + c],
                      fmt::format("row {}, column {}", r, c));
  fmt::print("{} x {} transposed\n", kRows, kColumns);
}
