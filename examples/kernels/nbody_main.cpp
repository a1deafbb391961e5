// A thousand bodies, ten steps: momentum stays, and the kernel agrees with plain C++.
#include <cmath>
#include <random>
#include <vector>

#include "example.h"

using namespace hologram;

int main() {
  constexpr int64_t kBodies = 1000;
  constexpr float kStep = 0.001f;
  std::mt19937 random(7);
  std::normal_distribution<float> draw;
  std::vector<float> x(kBodies * 3), v(kBodies * 3), mass(kBodies);
  for (float& p : x) p = draw(random);
  for (float& p : v) p = 0.1f * draw(random);
  for (float& m : mass) m = 0.5f + std::abs(draw(random));

  // One step in double, body by body.
  std::vector<double> expected(x.begin(), x.end());
  for (int64_t i = 0; i < kBodies; ++i)
    for (int c = 0; c < 3; ++c) {
      double a = 0;
      for (int64_t j = 0; j < kBodies; ++j) {
        double d[3], r2 = 1e-6;
        for (int k = 0; k < 3; ++k) {
          d[k] = double{x[j * 3 + k]} - x[i * 3 + k];
          r2 += d[k] * d[k];
        }
        a += mass[j] * d[c] / (r2 * std::sqrt(r2));
      }
      expected[i * 3 + c] += (v[i * 3 + c] + a * kStep) * kStep;
    }

  const auto executor = example::must(runtime::Executor::create());
  const auto step = example::kernel("nbody");
  const runtime::Dims dims{kBodies, 3};
  auto now_x = example::must(executor.tensor<float>(std::span<const float>(x), dims));
  auto now_v = example::must(executor.tensor<float>(std::span<const float>(v), dims));
  auto next_x = example::must(executor.empty(DType::f32, dims));
  auto next_v = example::must(executor.empty(DType::f32, dims));
  const auto m = example::must(executor.tensor<float>(std::span<const float>(mass), {kBodies}));
  const auto momentum = [&](const runtime::Tensor& velocity) {
    const auto view = example::must(velocity.view<const float>());
    double sum = 0;
    for (int64_t i = 0; i < kBodies; ++i) sum += double{mass[i]} * view[i * 3];
    return sum;
  };
  const double before = momentum(now_v);
  for (int i = 0; i < 10; ++i) {
    example::must(executor.run(step, now_x, now_v, m, next_x, next_v, kStep));
    std::swap(now_x, next_x);
    std::swap(now_v, next_v);
    if (i > 0) continue;
    const auto got = example::must(now_x.view<const float>());
    for (int64_t k = 0; k < kBodies * 3; ++k)
      example::expect(std::abs(got[k] - expected[k]) < 1e-4, fmt::format("coordinate {}", k));
  }
  const double drift = std::abs(momentum(now_v) - before);
  example::expect(drift < 0.05, fmt::format("momentum drifts by {}", drift));
  fmt::print("{} bodies, 10 steps, momentum drifted by {:.2g}\n", kBodies, drift);
}
