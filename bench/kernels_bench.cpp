// ./dev bench kernels: the library's kernels against the same loops in C++ under g++ -O3
// -march=native, both on one thread, in turns; and how long the whole library takes to compile.
// A ratio is C++ time over ours: above 1 is faster than C++.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

#include "backends/registry.h"
#include "bench/kernels_loops.h"
#include "codegen/compile.h"
#include "lang/compile.h"
#include "runtime/executor.h"
#include "support/file.h"
#include "support/thread_pool.h"

namespace hologram::bench {
namespace {

using Clock = std::chrono::steady_clock;
using runtime::Executor;

double seconds(const std::function<void()>& body, int calls) {
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) body();
  return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

struct Pair {
  double ours = 1e9, theirs = 1e9;
};

// The best of many, in turns, so that a slow moment of the machine hits both.
Pair measure(const std::function<void()>& ours, const std::function<void()>& theirs) {
  ours();
  theirs();
  const double once = std::max(seconds(theirs, 1), 1e-8);
  const int calls = std::max(1, static_cast<int>(2e-4 / once));
  const int turns = std::clamp(static_cast<int>(0.2 / (once * calls)), 5, 200);
  Pair best;
  for (int i = 0; i < turns; ++i) {
    best.ours = std::min(best.ours, seconds(ours, calls));
    best.theirs = std::min(best.theirs, seconds(theirs, calls));
  }
  return best;
}

double worst_ratio = 1e9;

void report(const std::string& what, const Pair& p) {
  worst_ratio = std::min(worst_ratio, p.theirs / p.ours);
  fmt::print("{:<34} {:>11.2f} us {:>11.2f} us   {:.2f}\n", what, p.ours * 1e6, p.theirs * 1e6,
             p.theirs / p.ours);
}

struct Data {
  std::vector<float> a, b, c, d;
  explicit Data(size_t n) : a(n), b(n), c(n), d(n) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> draw(0.1f, 4.0f);
    for (float& v : a) v = draw(random);
    for (float& v : b) v = draw(random);
  }
};

// The launch is checked once and then run, as a program that calls a kernel often would.
std::function<void()> prepared(const Executor& e, const std::string& kernel,
                               const isa::LaunchShape& shape,
                               std::initializer_list<backends::Argument> arguments) {
  const auto found = e.standard_kernel(kernel);
  if (!found) throw std::runtime_error(found.error().to_string());
  auto launch = e.prepare(**found, shape, arguments);
  if (!launch) throw std::runtime_error(launch.error().to_string());
  return [kept = *found, ready = std::shared_ptr(std::move(*launch))] { (void)ready->run(); };
}

backends::Argument in(const std::vector<float>& v) {
  return backends::Argument::array(std::span<const float>(v));
}
backends::Argument out(std::vector<float>& v) {
  return backends::Argument::array(std::span<float>(v));
}
backends::Argument u32(uint32_t v) { return backends::Argument::scalar(v); }

void elementwise(const Executor& e, size_t n) {
  Data data(n);
  const auto count = static_cast<uint32_t>(n);
  const isa::LaunchShape shape{{(count + 255) / 256, 1, 1}, {256, 1, 1}};
  for (size_t i = 0; i < kBinaryLoopCount; ++i) {
    const NamedBinaryLoop& l = kBinaryLoops[i];
    report(fmt::format("{} of {}", l.kernel, n),
           measure(prepared(e, l.kernel, shape, {in(data.a), in(data.b), out(data.c), u32(count)}),
                   [&] { l.loop(data.a.data(), data.b.data(), data.d.data(), n); }));
  }
  for (size_t i = 0; i < kUnaryLoopCount; ++i) {
    const NamedUnaryLoop& l = kUnaryLoops[i];
    report(fmt::format("{} of {}", l.kernel, n),
           measure(prepared(e, l.kernel, shape, {in(data.a), out(data.c), u32(count)}),
                   [&] { l.loop(data.a.data(), data.d.data(), n); }));
  }
}

void matmul(const Executor& e, uint32_t size) {
  Data data(size_t{size} * size);
  const isa::LaunchShape shape{{(size + 63) / 64, size, 1}, {64, 1, 1}};
  const auto s = u32(size);
  report(
      fmt::format("gemm_f32 {0} x {0} x {0}", size),
      measure(
          prepared(e, "gemm_f32", shape, {in(data.a), in(data.b), out(data.c), s, s, s, s, s, s}),
          [&] { matmul_loop(data.a.data(), data.b.data(), data.d.data(), size, size, size); }));
}

void convolution(const Executor& e, uint32_t channels, uint32_t size) {
  Data image(size_t{channels} * size * size), weights(size_t{channels} * channels * 9);
  const isa::LaunchShape shape{{(size + 63) / 64, size, channels}, {64, 1, 1}};
  const auto c = u32(channels), s = u32(size), one = u32(1), three = u32(3);
  report(
      fmt::format("onnx_conv2d 3x3, {} channels of {}", channels, size),
      measure(
          prepared(
              e, "onnx_conv2d", shape,
              {in(image.a), in(weights.a), in(image.b), out(image.c), one, c,   s,   s,   c,  s, s,
               three,       three,         one,         one,          one, one, one, one, one}),
          [&] {
            convolution_loop(image.a.data(), weights.a.data(), image.b.data(), image.d.data(),
                             channels, size, size, channels);
          }));
}

void compile_library() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(HOLOGRAM_SOURCE_DIR "/kernels"))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  const codegen::Target target = *codegen::Target::host();
  ThreadPool pool(2);
  double best = 1e9;
  std::atomic<size_t> kernels;
  for (int turn = 0; turn < 3; ++turn) {
    kernels = 0;
    best = std::min(best, seconds(
                              [&] {
                                pool.parallel_for(
                                    files.size(), 1,
                                    [&](size_t begin, size_t end) {
                                      for (size_t i = begin; i < end; ++i) {
                                        const auto source =
                                            lang::compile_source(*read_text_file(files[i]));
                                        for (const lang::CompiledKernel& k : *source) {
                                          if (!codegen::compile(k.program, target)) std::abort();
                                          ++kernels;
                                        }
                                      }
                                    },
                                    Schedule::dynamic);
                              },
                              1));
  }
  fmt::print("\nthe whole library, {} kernels, source to native code on 2 threads: {:.2f} s\n",
             kernels.load(), best);
}

}  // namespace
}  // namespace hologram::bench

int main() {
  using namespace hologram;
  using namespace hologram::bench;
  Config config;
  config.num_threads = 1;
  const auto executor = Executor::create(config);
  if (!executor) {
    fmt::print(stderr, "{}\n", executor.error().to_string());
    return 1;
  }
  fmt::print("{}\n{:<34} {:>14} {:>14}   {}\n", executor->backend().capabilities().device, "kernel",
             "ours", "g++ -O3", "ratio");
  for (size_t n : {16384u, 1048576u}) elementwise(*executor, n);
  matmul(*executor, 256);
  convolution(*executor, 32, 56);
  fmt::print("\nworst ratio: {:.2f} (asked for: 0.90)\n", worst_ratio);
  compile_library();
}
