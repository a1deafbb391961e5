// How often each byte stands in a million: atomics against a plain loop.
#include <array>
#include <random>
#include <vector>

#include "example.h"

using namespace hologram;

int main() {
  std::mt19937 random(3);
  std::binomial_distribution<int> draw(255, 0.4);
  std::vector<uint8_t> data(1'000'003);
  std::array<uint32_t, 256> expected{};
  for (uint8_t& byte : data) ++expected[byte = static_cast<uint8_t>(draw(random))];

  const auto executor = example::must(runtime::Executor::create());
  std::array<uint32_t, 256> counts{};
  example::must(executor.run(example::kernel("histogram"), std::span<const uint8_t>(data),
                             std::span<uint32_t>(counts), static_cast<uint32_t>(data.size())));
  for (size_t i = 0; i < counts.size(); ++i)
    example::expect(counts[i] == expected[i],
                    fmt::format("bin {}: {}, not {}", i, counts[i], expected[i]));
  for (size_t row = 60; row < 150; row += 6)
    fmt::print("{:4} {}\n", row, std::string(counts[row] / 800, '#'));
}
