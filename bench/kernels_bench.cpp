// ./dev bench kernels: the library's kernels against the same loops in C++ under g++ -O3
// -march=native, both on one thread, in turns; and how long the whole library takes to compile.
// A ratio is C++ time over ours: above 1 is faster than C++.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <vector>

#include "backends/registry.h"
#include "bench/kernels_loops.h"
#include "codegen/compile.h"
#include "lang/compile.h"
#include "runtime/executor.h"
#include "support/aligned.h"
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

constexpr double kAskedFor = 0.9;
double worst_ratio = 1e9;

void report(const std::string& what, const Pair& p) {
  const double ratio = p.theirs / p.ours;
  worst_ratio = std::min(worst_ratio, ratio);
  fmt::print("{:<38} {:>11.2f} us {:>11.2f} us   {:.2f}{}\n", what, p.ours * 1e6, p.theirs * 1e6,
             ratio, ratio < kAskedFor ? "  BELOW" : "");
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
                               const std::vector<backends::Argument>& arguments) {
  const auto found = e.standard_kernel(kernel);
  if (!found) throw std::runtime_error(found.error().to_string());
  auto launch = e.backend().prepare(**found, shape, arguments);
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

// An array of any type, aligned as the runtime's own memory is: random numbers from 0.1 to 4.
AlignedBytes numbers(DType type, size_t n) {
  AlignedBytes bytes = *AlignedBytes::allocate(n * size_of(type));
  std::ranges::fill(bytes.bytes(), std::byte{0});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(0.1f, 4.0f);
  for (size_t i = 0; i < n; ++i) {
    const float value = draw(random);
    const auto put = [&]<typename T>(T v) {
      std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
    };
    switch (type) {
      case DType::f32:
        put(value);
        break;
      case DType::f64:
        put(double{value});
        break;
      case DType::f16:
        put(f64_to_f16(value));
        break;
      case DType::bf16:
        put(f64_to_bf16(value));
        break;
      default:  // integers and bool
        bytes.data()[i * size_of(type)] =
            static_cast<std::byte>(type == DType::boolean ? value > 2 : value);
    }
  }
  return bytes;
}

void elementwise(const Executor& e, size_t n) {
  using backends::Argument;
  const auto count = static_cast<uint32_t>(n);
  const isa::LaunchShape shape{{(count + 255) / 256, 1, 1}, {256, 1, 1}};
  constexpr float kScalars[] = {0.5f, 2.0f};
  for (const ElementLoop& l : element_loops()) {
    const AlignedBytes a = numbers(l.from, n), b = numbers(l.from, n);
    // Both write to the same place: how far it lies from the inputs decides how fast a store is.
    const AlignedBytes c = numbers(l.to, n);
    std::vector<Argument> arguments;
    if (l.inputs > 0) arguments.push_back(Argument::array_of(l.from, a.data(), n, false));
    if (l.inputs > 1) arguments.push_back(Argument::array_of(l.from, b.data(), n, false));
    arguments.push_back(Argument::array_of(l.to, c.data(), n, true));
    for (int i = 0; i < l.scalars; ++i) arguments.push_back(Argument::scalar(kScalars[i]));
    arguments.push_back(u32(count));
    report(fmt::format("{} of {}", l.kernel, n),
           measure(prepared(e, l.kernel, shape, arguments),
                   [&] { l.loop(a.data(), b.data(), c.data(), kScalars, n); }));
  }
}

// Element-wise with a parameter a row or a plane.
void rows(const Executor& e, uint32_t count, uint32_t length) {
  Data data(size_t{count} * length), row(std::max(count, length));
  report(
      fmt::format("onnx_bias_gelu {} x {}", count, length),
      measure(prepared(e, "onnx_bias_gelu", {{(length + 255) / 256, count, 1}, {256, 1, 1}},
                       {in(data.a), in(row.a), out(data.c), u32(count), u32(length)}),
              [&] { bias_gelu_loop(data.a.data(), row.a.data(), data.d.data(), count, length); }));
  report(fmt::format("onnx_batch_normalization {} x {}", count, length),
         measure(prepared(e, "onnx_batch_normalization",
                          {{(length + 255) / 256, count, 1}, {256, 1, 1}},
                          {in(data.a), in(row.a), in(row.b), in(row.a), in(row.b), out(data.c),
                           u32(1), u32(count), u32(length), backends::Argument::scalar(1e-5f)}),
                 [&] {
                   batch_normalization_loop(data.a.data(), row.a.data(), row.b.data(), row.a.data(),
                                            row.b.data(), data.d.data(), 1, count, length, 1e-5f);
                 }));
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

// Kernels of the library with a thread an element, launch(n), that no loop here is the measure of.
std::vector<std::string> not_measured() {
  std::vector<std::string> missing;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(HOLOGRAM_SOURCE_DIR "/kernels")) {
    if (entry.path().extension() != ".py") continue;
    const auto kernels = lang::compile_source(*read_text_file(entry.path()), entry.path().string());
    for (const lang::CompiledKernel& k : *kernels) {
      const auto& launch = k.ir.launch;
      const bool flat = launch && launch->threads.size() == 1 && launch->threads[0].name == "n" &&
                        std::ranges::none_of(k.ir.params, [](const lang::ir::Param& p) {
                          return p.name == "rank";  // moves elements about: not element by element
                        });
      const bool known = std::ranges::any_of(
          element_loops(), [&](const ElementLoop& l) { return l.kernel == k.ir.name; });
      if (flat && !known) missing.push_back(k.ir.name);
    }
  }
  return missing;
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
                                        const auto source = lang::compile_source(
                                            *read_text_file(files[i]), files[i].string());
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
  fmt::print("{}\n{:<38} {:>14} {:>14}   {}\n", executor->backend().capabilities().device, "kernel",
             "ours", "g++ -O3", "ratio");
  for (size_t n : {16384u, 1048576u}) elementwise(*executor, n);
  rows(*executor, 64, 768);
  matmul(*executor, 256);
  convolution(*executor, 32, 56);
  fmt::print("\nworst ratio: {:.2f} (asked for: {:.2f})\n", worst_ratio, kAskedFor);
  compile_library();
  const std::vector<std::string> missing = not_measured();
  if (!missing.empty())
    fmt::print("\nelement-wise kernels without a loop to compare with: {}\n",
               fmt::join(missing, ", "));
  return missing.empty() ? 0 : 1;
}
