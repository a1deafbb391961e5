// What a session costs beside its kernels: binding new shapes, a step, and sharing the machine. Run
// by `./dev bench session`, or `session_bench ARCHIVE.holo` for the latter, median and middle 80%
// of 15 turns. Opening and first results are hologram-first-result's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "bench/must.h"
#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/aligned.h"

namespace hologram::bench {
namespace {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using Clock = std::chrono::steady_clock;

constexpr int kSteps = 500;

double microseconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Times {
  double best, median;
};
Times times_of(int count, const std::function<void()>& body) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(microseconds(body));
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2]};
}

// A chain of `kSteps` steps over x[n, 4], four of which are alive at a time.
Session chain(const char* op) {
  graph::Graph g;
  g.name = "chain";
  graph::ValueId x = g.add_input(
      "x", graph::ValueType::tensor(DType::f32, Shape(std::vector<Dim>{Dim(std::string("n")), 4})));
  std::vector<graph::ValueId> alive = {x};
  for (int i = 0; i < kSteps; ++i) {
    graph::ValueId next =
        std::strcmp(op, "Add") == 0
            ? g.op(op).input(alive.back()).input(alive.front()).output()
            : g.op(op).input(alive.back()).attribute("perm", std::vector<int64_t>{0, 1}).output();
    alive.push_back(next);
    if (alive.size() > 4) alive.erase(alive.begin());
  }
  g.outputs = {alive.back()};
  g.output_names = {"y"};
  const std::vector<std::byte> bytes = must(compiler::compile(std::move(g), {.optimise = false}));
  auto owner = std::make_shared<AlignedBytes>(must(AlignedBytes::allocate(bytes.size())));
  std::memcpy(owner->data(), bytes.data(), bytes.size());
  return must(Session::open(must(archive::Archive::open(owner->bytes(), owner))));
}

void measure_steps(const char* op) {
  const Session session = chain(op);
  const std::vector inputs{Value(must(Tensor::allocate(DType::f32, {1, 4})))};
  std::fill_n(inputs[0].tensor.as<float>(), 4, 0.f);
  const std::vector results{must(Tensor::allocate(DType::f32, {1, 4}))};
  must(session.run_into(inputs, results));
  const Times run = times_of(2000, [&] { must(session.run_into(inputs, results)); });
  std::printf("%-10s %d steps: %7.1f ns a step (median %.1f)\n", op, kSteps,
              run.best * 1e3 / kSteps, run.median * 1e3 / kSteps);
}

void measure_binding(const char* op) {
  const Session session = chain(op);
  int64_t n = 0;
  const Times fresh = times_of(64, [&] { must(session.bind(std::vector{Dims{++n, 4}})); });
  const Times cached = times_of(1000, [&] {
    n = n % 60 + 5;
    must(session.bind(std::vector{Dims{n, 4}}));
  });
  std::printf("bind %-10s %d steps: new shape %.1f us (median %.1f), cached %.2f us; %llu made\n",
              op, kSteps, fresh.best, fresh.median, cached.median,
              static_cast<unsigned long long>(session.bindings_made()));
}

std::vector<Value> inputs_of(const Session& session) {
  std::vector<Value> inputs;
  for (const auto& port : session.inputs()) {
    Dims dims;
    for (const Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? 64 : dim.value());
    inputs.emplace_back(must(Tensor::allocate(port.dtype, dims)));
    std::memset(inputs.back().tensor.data, 0, inputs.back().tensor.bytes());
  }
  return inputs;
}

void measure_archive(const char* path) {
  const Session session = must(Session::open(path));
  const std::vector<Value> inputs = inputs_of(session);
  must(session.run(inputs));
  const Times later = times_of(10, [&] { must(session.run(inputs)); });
  std::printf("run        best %.1f ms (median %.1f)\n", later.best / 1e3, later.median / 1e3);

  // Throughput: one session at a time, and four at once.
  const auto runs_per_second = [&](int threads, int runs) {
    const double us = microseconds([&] {
      std::vector<std::thread> workers;
      for (int t = 0; t < threads; ++t)
        workers.emplace_back([&] {
          for (int i = 0; i < runs; ++i) must(session.run(inputs));
        });
      for (std::thread& worker : workers) worker.join();
    });
    return threads * runs / us * 1e6;
  };
  runs_per_second(4, 1);  // each gets its memory
  // In turns, so that what neighbours take from the machine falls on both.
  const int runs = std::max(1, static_cast<int>(1e5 / later.best));
  std::vector<double> one, four, ratios;
  for (int turn = 0; turn < 15; ++turn) {
    one.push_back(runs_per_second(1, 4 * runs));
    four.push_back(runs_per_second(4, runs));
    ratios.push_back(four.back() / one.back());
  }
  for (auto* values : {&one, &four, &ratios}) std::sort(values->begin(), values->end());
  std::printf("throughput one session %.2f runs/s, four at once %.2f: ratio %.3f (%.2f..%.2f)\n",
              one[7], four[7], ratios[7], ratios[1], ratios[13]);
}

}  // namespace
}  // namespace hologram::bench

int main(int argc, char** argv) {
  using namespace hologram::bench;
  if (argc > 1) {
    measure_archive(argv[1]);
    return 0;
  }
  measure_steps("Add");
  measure_steps("Transpose");
  measure_binding("Add");
  measure_binding("Transpose");
  return 0;
}
