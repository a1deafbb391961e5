// dense_bench [FILTER]: the CPU's numeric kernels at the shapes of known models, each beside the
// machine's ceiling measured in turns with it. Prints kernel, shape, speed and fraction of ceiling.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/dense/gemm.h"
#include "bench/measure.h"
#include "fmt/core.h"
#include "support/aligned.h"

namespace hologram::bench {
namespace {
using namespace backends::dense;

std::string filter;
bool wanted(const std::string& name) { return name.find(filter) != std::string::npos; }

struct Floats {
  AlignedBytes bytes;
  explicit Floats(size_t count, float scale = 1.0f)
      : bytes(AlignedBytes::allocate(count * sizeof(float) + 64).value()) {
    uint32_t state = 12345;
    for (float& v : bytes.as<float>()) {
      state = state * 1664525u + 1013904223u;
      v = scale * (static_cast<float>(state >> 8) / 16777216.0f - 0.5f);
    }
  }
  float* data() const { return bytes.as<float>().data(); }
};

void row(const std::string& name, const std::string& shape, double amount, const char* unit,
         Timing t, unsigned threads = 1) {
  const double speed = amount / t.seconds * 1e-9;
  fmt::print("{:<26} {:<34} {:>10.1f} us {:>8.1f} {:<8} {:>6.3f} of {:.1f}\n", name, shape,
             t.seconds * 1e6, speed, unit, speed / t.ceiling / threads, t.ceiling);
  std::fflush(stdout);
}

double bench_gemm(const char* name, size_t m, size_t n, size_t k, ThreadPool& pool,
                  Activation activation = Activation::none, bool packed = true) {
  if (!wanted(name)) return 0;
  Floats a(m * k), b(k * n), c(m * n), bias(n), b_packed(packed_b_bytes(k, n) / 4);
  pack_b(k, n, b.data(), n, false, b_packed.data(), pool);
  Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  g.packed_b = packed ? b_packed.data() : nullptr;
  g.b = packed ? nullptr : b.data();
  g.ldb = n;
  g.epilogue.bias = bias.data();
  g.epilogue.activation = activation;
  Floats scratch(gemm_scratch_bytes(g) / 4);
  const auto run = [&] { gemm(g, scratch.bytes.data(), pool); };
  const Timing t = measure(run, fma_ceiling);
  row(name, fmt::format("{}x{}x{} threads {}", m, n, k, pool.size()), 2.0 * m * n * k, "GFLOP/s", t,
      pool.size());
  return t.seconds;
}

// Weights far beyond the caches: each call uses the next matrix of a ring.
void bench_gemv(const char* name, size_t m, size_t n, size_t k, ThreadPool& pool) {
  if (!wanted(name)) return;
  const size_t bytes = packed_b_bytes(k, n),
               ring = std::max<size_t>((size_t{256} << 20) / bytes, 1);
  Floats a(m * k), c(m * n), b(ring * bytes / 4);
  Gemm g{.m = m, .n = n, .k = k, .a = a.data(), .lda = k, .c = c.data(), .ldc = n};
  size_t turn = 0;
  g.packed_b = b.data();
  Floats scratch(gemm_scratch_bytes(g) / 4);
  const auto run = [&] {
    g.packed_b = b.data() + turn++ % ring * (bytes / 4);
    gemm(g, scratch.bytes.data(), pool);
  };
  const Timing t = measure(run, read_ceiling, 1.0);
  row(name, fmt::format("{}x{}x{} threads {}", m, n, k, pool.size()), static_cast<double>(bytes),
      "GB/s", t);
}

void gemm_table(ThreadPool& one, ThreadPool& two) {
  bench_gemm("gemm square", 512, 512, 512, one);
  bench_gemm("gemm bert up", 128, 3072, 768, one);
  bench_gemm("gemm bert down", 128, 768, 3072, one);
  bench_gemm("gemm bert up gelu", 128, 3072, 768, one, Activation::gelu_erf);
  bench_gemm("gemm bert projection", 128, 768, 768, one);
  bench_gemm("gemm vit up", 197, 3072, 768, one);
  bench_gemm("gemm gpt2 head", 128, 50257, 768, one);
  bench_gemm("gemm minilm", 128, 1536, 384, one);
  bench_gemm("gemm unpacked", 512, 512, 512, one, Activation::none, false);
  bench_gemm("gemm unpacked scores", 128, 128, 64, one, Activation::none, false);
  bench_gemm("gemm odd", 333, 333, 333, one);
  for (auto [m, n, k] :
       {std::array<size_t, 3>{512, 512, 512}, {128, 3072, 768}, {128, 768, 3072}}) {
    const double t1 = bench_gemm("gemm scaling", m, n, k, one);
    const double t2 = bench_gemm("gemm scaling", m, n, k, two);
    if (t1 > 0)
      fmt::print("{:<26} {}x{}x{}: {:.2f} on two threads\n", "gemm scaling", m, n, k, t1 / t2);
  }
  for (size_t m : {1, 2, 4, 8}) bench_gemv("gemv gpt2", m, 3072, 768, one);
  bench_gemv("gemv llama", 1, 4096, 4096, one);
  bench_gemv("gemv llama", 1, 4096, 4096, two);
}

}  // namespace
}  // namespace hologram::bench

int main(int argc, char** argv) {
  using namespace hologram;
  if (argc > 1) bench::filter = argv[1];
  ThreadPool one(1), two(2);
  fmt::print("one thread: FMA {:.1f} GFLOP/s, read {:.1f} GB/s\n", bench::fma_ceiling(),
             bench::read_ceiling());
  bench::gemm_table(one, two);
}
