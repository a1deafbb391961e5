// The core's numbers: what a launch costs, and how near element-wise ops and reductions come to
// loops written by hand. Ours and the loop take turns within one run; a ratio above 1 means that
// ours is faster. Run by `./dev bench core`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "bench/core_loops.h"
#include "bench/must.h"
#include "runtime/ops/ops.h"
#include "support/aligned.h"

namespace hologram::bench {
namespace {

using backends::Argument;
using runtime::Executor;
using runtime::Tensor;
using Clock = std::chrono::steady_clock;

constexpr int64_t kLargest = int64_t{64} << 20;

ThreadPool& pool() {
  static ThreadPool two(2);
  return two;
}

const Executor& executor(unsigned threads) {
  const auto make = [](unsigned count) {
    backends::CpuOptions options;
    options.pool = &pool();
    options.threads = count;
    return Executor(
        std::shared_ptr<backends::Backend>(must(backends::CpuBackend::create(options))));
  };
  static const Executor one = make(1), two = make(2);
  return threads == 1 ? one : two;
}

// Memory that both sides use, one set a thread count (a tensor belongs to an executor).
struct Data {
  Tensor a, b, out, scalar;
  float *a_data, *b_data, *out_data;
};
Data data(unsigned threads, int64_t n) {
  // Aligned as the runtime's own memory is, for both sides, and each at another place of its page:
  // a load that looks like a store still on its way waits for it, which makes the time of any loop
  // jump by half with the least change around it.
  constexpr size_t kApart = (1024 + 64) / sizeof(float);
  static AlignedBytes storage[3];
  static std::span<float> values[3];
  if (storage[0].size() == 0)
    for (size_t k = 0; k < 3; ++k) {
      const size_t count = static_cast<size_t>(kLargest) + k * kApart;
      storage[k] = must(AlignedBytes::allocate(count * sizeof(float)));
      values[k] = storage[k].as<float>().subspan(k * kApart);
      std::ranges::fill(values[k], 0.25f * static_cast<float>(k + 1));
    }
  const Executor& on = executor(threads);
  const auto tensor = [&](int k) {
    return must(on.borrow(values[k].first(static_cast<size_t>(n)), {n}));
  };
  return {tensor(0),        tensor(1),        tensor(2),       must(on.empty(DType::f32, {})),
          values[0].data(), values[1].data(), values[2].data()};
}

// A loop by hand on `threads` threads. Work too small to be worth a fork stays on one.
template <typename Loop>
void by_hand(unsigned threads, int64_t n, Loop loop) {
  if (threads == 1 || n < 65536) {
    loop(0, static_cast<size_t>(n));
    return;
  }
  pool().parallel_for(static_cast<size_t>(n), 1024,
                      [&](size_t begin, size_t end) { loop(begin, end - begin); });
}

struct Row {
  std::string name;
  double ours, hand;         // best nanoseconds a call
  double low, middle, high;  // ratio hand / ours over the rounds: 10%, median, 90%
  double wanted;
};
std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

double seconds_of(const std::function<void()>& body, int calls) {
  const auto start = Clock::now();
  for (int i = 0; i < calls; ++i) body();
  return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

// Turns of ours and theirs, each long enough for the clock.
void compare(benchmark::State& state, const std::string& name, double wanted,
             const std::function<void()>& ours, const std::function<void()>& hand) {
  // Warm first: a cold call would make the turns too short for the clock.
  for (int i = 0; i < 3; ++i) hand(), ours();
  const double once = std::max(1e-9, seconds_of(ours, 3));
  const int calls = std::max(1, static_cast<int>(50e-6 / once));
  std::vector<double> ratios;
  double best_ours = 1e9, best_hand = 1e9;
  for (auto _ : state) {
    // Which goes first alternates too: the second finds warmer caches.
    const bool ours_first = ratios.size() % 2 == 0;
    double mine = ours_first ? seconds_of(ours, calls) : 0;
    const double theirs = seconds_of(hand, calls);
    if (!ours_first) mine = seconds_of(ours, calls);
    state.SetIterationTime(mine);
    best_ours = std::min(best_ours, mine);
    best_hand = std::min(best_hand, theirs);
    ratios.push_back(theirs / mine);
  }
  std::ranges::sort(ratios);
  const auto at = [&](double part) {
    return ratios[static_cast<size_t>(part * static_cast<double>(ratios.size() - 1))];
  };
  state.counters["ratio"] = at(0.5);
  rows().push_back({name, best_ours * 1e9, best_hand * 1e9, at(0.1), at(0.5), at(0.9), wanted});
}

std::string size_name(int64_t n) {
  return n >= 1 << 20 ? fmt::format("{} Mi", n >> 20) : fmt::format("{} Ki", n >> 10);
}

void add_case(const char* op, int64_t n, unsigned threads, double wanted,
              std::function<void(const Executor&, const Data&)> ours,
              std::function<float(const Data&, size_t, size_t)> hand) {
  const std::string name =
      fmt::format("{} {} {} thread{}", op, size_name(n), threads, threads == 1 ? "" : "s");
  auto* made = benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const Data d = data(threads, n);
    const Executor& on = executor(threads);
    compare(
        state, name, wanted, [&] { ours(on, d); },
        [&] {
          by_hand(threads, n, [&](size_t begin, size_t count) {
            benchmark::DoNotOptimize(hand(d, begin, count));
          });
        });
  });
  made->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(n > (8 << 20) ? 15 : 1500);
}

void register_ops() {
  for (const int64_t n : {int64_t{4} << 10, int64_t{1} << 20, kLargest})
    for (const unsigned threads : {1u, 2u}) {
      namespace ops = runtime::ops;
      add_case(
          "vector_add", n, threads, 0.95,
          [](const Executor& on, const Data& d) { must(ops::add(on, d.a, d.b, d.out)); },
          [](const Data& d, size_t at, size_t count) {
            hand_add(d.a_data + at, d.b_data + at, d.out_data + at, count);
            return 0.f;
          });
      add_case(
          "relu", n, threads, 0.95,
          [](const Executor& on, const Data& d) { must(ops::relu(on, d.a, d.out)); },
          [](const Data& d, size_t at, size_t count) {
            hand_relu(d.a_data + at, d.out_data + at, count);
            return 0.f;
          });
      add_case(
          "a*x+y", n, threads, 0.95,
          [](const Executor& on, const Data& d) { must(ops::axpy(on, 1.5f, d.a, d.b, d.out)); },
          [](const Data& d, size_t at, size_t count) {
            hand_axpy(1.5f, d.a_data + at, d.b_data + at, d.out_data + at, count);
            return 0.f;
          });
      add_case(
          "sum", n, threads, 0.9,
          [](const Executor& on, const Data& d) { must(ops::sum(on, d.a, {}, d.scalar)); },
          [](const Data& d, size_t at, size_t count) { return hand_sum(d.a_data + at, count); });
      add_case(
          "dot", n, threads, 0.9,
          [](const Executor& on, const Data& d) { must(ops::dot(on, d.a, d.b, d.scalar)); },
          [](const Data& d, size_t at, size_t count) {
            return hand_dot(d.a_data + at, d.b_data + at, count);
          });
    }
}

// --- Launches
// --------------------------------------------------------------------------------------

// One block of one thread storing one element: what is left is the launch.
struct Tiny {
  const Executor& on = executor(2);
  runtime::KernelRef kernel = must(on.standard_kernel("onnx_constant_fill"));
  float target = 0;
  Argument arguments[3] = {Argument::array(std::span(&target, 1)), Argument::scalar(7.f),
                           Argument::scalar(uint32_t{1})};
  std::unique_ptr<runtime::PreparedLaunch> prepared =
      must(on.backend().prepare(*kernel, {}, arguments));
};

struct Cost {
  std::string name;
  double nanoseconds, wanted;
};
std::vector<Cost>& costs() {
  static std::vector<Cost> all;
  return all;
}

// The best of many batches of calls, each beside a batch of empty calls.
// What `body` takes more than `base`.
void cost(benchmark::State& state, const char* name, double wanted,
          const std::function<void()>& base, const std::function<void()>& body, int calls) {
  double best = 1e9, least = 1e9;
  for (auto _ : state) {
    const double seconds = seconds_of(body, calls);
    if (base) least = std::min(least, seconds_of(base, calls));
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  costs().push_back({name, (best - (base ? least : 0)) * 1e9, wanted});
}

void add_cost(const char* name, double wanted, std::function<void()> base,
              std::function<void()> body, int calls = 500) {
  benchmark::RegisterBenchmark(
      name, [=](benchmark::State& state) { cost(state, name, wanted, base, body, calls); })
      ->UseManualTime()
      ->Unit(benchmark::kNanosecond)
      ->Iterations(400);
}

// 50 us, by the clock.
void work() {
  const auto end = Clock::now() + std::chrono::microseconds(50);
  while (Clock::now() < end) __builtin_ia32_pause();
}

void register_costs() {
  static Tiny tiny;
  static const Data one = data(2, 1);
  void (*volatile empty)() = empty_function;
  const std::function<void()> nothing = [empty] { empty(); };
  add_cost("empty call", 0, nullptr, [call = empty_function] { call(); });
  add_cost("prepared launch", 100, nothing, [] {
    must(tiny.prepared->set_array(0, &tiny.target, 1));
    must(tiny.prepared->run());
  });
  add_cost("checked launch", 100, nothing,
           [] { must(tiny.on.launch(*tiny.kernel, {}, std::span(tiny.arguments))); });
  add_cost("op on one element", 100, nothing,
           [] { must(runtime::ops::add(executor(2), one.a, one.b, one.out)); });
  // Work that is worth a second thread: what two of it take longer than one.
  add_cost(
      "fork and join, 2 threads", 3000, work,
      [] {
        pool().parallel_for(2, 1, [](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) work();
        });
      },
      20);
}

void print_summary() {
  std::printf("\n%-26s %12s %12s %8s  %-14s %s\n", "against a loop by hand", "ours ns", "loop ns",
              "ratio", "10%..90%", "wanted");
  for (const Row& row : rows())
    std::printf("%-26s %12.0f %12.0f %8.3f  %.3f..%.3f   >= %.2f%s\n", row.name.c_str(), row.ours,
                row.hand, row.middle, row.low, row.high, row.wanted,
                row.middle >= row.wanted ? "" : "  BELOW");
  std::printf("\n%-26s %12s %s\n", "best, over an empty call", "ns", "   wanted");
  for (const Cost& c : costs()) {
    std::printf("%-26s %12.1f", c.name.c_str(), c.nanoseconds);
    if (c.wanted > 0)
      std::printf("    <= %.0f%s", c.wanted, c.nanoseconds <= c.wanted ? "" : "  ABOVE");
    std::printf("\n");
  }
}

}  // namespace
}  // namespace hologram::bench

int main(int argc, char** argv) {
  using namespace hologram::bench;
  if (!has_avx512()) {
    std::printf("core: this CPU has no AVX-512, which the loops to compare with are written in\n");
    return 0;
  }
  register_costs();
  register_ops();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  print_summary();
  return 0;
}
