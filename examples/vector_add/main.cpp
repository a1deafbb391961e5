// Adds two vectors: by an op on tensors, and by launching a kernel of the standard library.
#include <hologram/hologram.h>

#include <cstdio>
#include <numeric>
#include <vector>

namespace {

using hologram::Executor;
using hologram::Tensor;

hologram::Status run() {
  HOLOGRAM_TRY(const Executor executor, Executor::create());
  const auto& device = executor.backend().capabilities();
  std::printf("backend: %s (%s)\n", device.backend.c_str(), device.device.c_str());

  // Memory of the backend, filled from the host; on the CPU it can be seen in place.
  constexpr int64_t kCount = 1000;
  HOLOGRAM_TRY(auto a, executor.allocate<float>(kCount));
  HOLOGRAM_TRY(auto b, executor.allocate<float>(kCount));
  HOLOGRAM_TRY(const std::span<float> a_view, a.view());
  std::iota(a_view.begin(), a_view.end(), 0.f);
  HOLOGRAM_CHECK(b.copy_from(std::vector<float>(kCount, 0.5f)));

  // As an op on tensors.
  HOLOGRAM_TRY(const Tensor x, a.tensor());
  HOLOGRAM_TRY(const Tensor y, b.tensor());
  HOLOGRAM_TRY(const Tensor sum, hologram::ops::add(executor, x, y));
  HOLOGRAM_TRY(const std::span<const float> values, sum.view<const float>());
  std::printf("op:     %g + %g = %g\n", a_view[999], 0.5, values[999]);

  // The same by hand: a precompiled kernel over one block of threads.
  HOLOGRAM_TRY(const hologram::KernelRef kernel, executor.standard_kernel("vector_add"));
  HOLOGRAM_TRY(auto out, executor.allocate<float>(kCount));
  HOLOGRAM_CHECK(executor.launch(*kernel, {.grid = {1, 1, 1}, .block = {kCount, 1, 1}},
                                 {a.input("a"), b.input("b"), out.output("c"),
                                  hologram::Argument::scalar(uint32_t{kCount}, "n")}));
  HOLOGRAM_TRY(const std::span<float> launched, out.view());
  std::printf("launch: %g + %g = %g\n", a_view[1], 0.5, launched[1]);

  // A launch that cannot be right is refused before anything runs.
  const hologram::Status refused = executor.launch(*kernel, {.block = {kCount, 1, 1}}, {a.input()});
  std::printf("refused: %s\n", refused ? "no" : refused.error().to_string().c_str());
  return {};
}

}  // namespace

int main() {
  if (const hologram::Status done = run(); !done) {
    std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
    return 1;
  }
  return 0;
}
