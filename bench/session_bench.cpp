// What a session costs beside its kernels: opening an archive, its first result, binding new
// shapes, a step, and sharing the machine. Run by `./dev bench session`, or `session_bench
// ARCHIVE.holo`: without an archive the parts that need one are left out.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/aligned.h"
#include "support/file.h"

namespace hologram::bench {
namespace {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using Clock = std::chrono::steady_clock;

constexpr int kSteps = 500;

template <typename T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
  std::exit(1);
}
void must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().to_string().c_str());
  std::exit(1);
}

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

long minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
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

// Maps of the archive's file, and fresh memory, touched page by page: what a fault of each costs.
struct FaultCost {
  double file, anonymous;  // microseconds
};
FaultCost fault_cost(const char* path) {
  const auto touch = [](std::span<std::byte> bytes, bool write) {
    volatile std::byte* at = bytes.data();
    const auto pass = [&] {
      for (size_t i = 0; i < bytes.size(); i += 4096)
        if (write)
          at[i] = std::byte{1};
        else
          (void)at[i];
    };
    const long before = minor_faults();
    const double first = microseconds(pass);
    const long faults = minor_faults() - before;
    return (first - microseconds(pass)) / static_cast<double>(std::max(1L, faults));
  };
  const FileMap map = must(FileMap::open(path));
  const auto bytes = map.bytes();
  AlignedBytes fresh = must(AlignedBytes::allocate(16 << 20));
  return {touch({const_cast<std::byte*>(bytes.data()), bytes.size()}, false),
          touch(fresh.bytes(), true)};
}

// How long a first result takes beside a later one, without the page faults that neither has to
// answer for. In a process of its own: the pool's threads start with it.
void measure_archive(const char* path) {
  const FaultCost cost = fault_cost(path);
  std::optional<archive::Archive> archive;
  std::optional<Session> session;
  const long at_start = minor_faults();
  const double map = microseconds([&] { archive = must(archive::Archive::open(path)); });
  const long before_load = minor_faults();
  const double load = microseconds([&] { session = must(Session::open(*archive)); });
  const long opened = minor_faults();
  const double first_open = map + load;
  const std::vector<Value> inputs = inputs_of(*session);
  const long before = minor_faults();
  const double threads_start =
      microseconds([&] { ThreadPool::shared().parallel_for(2, 1, [](size_t, size_t) {}); });
  const long before_check = minor_faults();
  const double check = microseconds([&] { must(archive->verify()); });
  const long before_run = minor_faults();
  const double first_run = microseconds([&] { must(session->run(inputs)); });
  const long after = minor_faults();
  const Times later = times_of(10, [&] { must(session->run(inputs)); });
  const Times open = times_of(200, [&] { must(Session::open(path)); });
  const double first = first_open + threads_start + check + first_run;
  // Faults of maps are the cheaper ones: to count all as such is to be strict.
  const double faults = static_cast<double>(after - before) * std::min(cost.file, cost.anonymous);
  std::printf(
      "open       %s: first %.0f us (archive %.0f with %ld faults, session %.0f with %ld), then "
      "best "
      "%.0f us (median %.0f)\n",
      path, first_open, map, before_load - at_start, load, opened - before_load, open.best,
      open.median);
  std::printf(
      "first      threads %.2f ms, check %.2f ms (%ld faults), run %.2f ms (%ld faults); a fault "
      "%.2f us of a file, %.2f us of fresh memory\n",
      threads_start / 1e3, check / 1e3, before_run - before_check, first_run / 1e3,
      after - before_run, cost.file, cost.anonymous);
  std::printf("later      best %.1f ms (median %.1f)\n", later.best / 1e3, later.median / 1e3);
  std::printf(
      "first result, opening included: %.2f of a later run, %.2f without its %.1f ms of faults\n",
      first / later.median, (first - faults) / later.median, faults / 1e3);

  // Throughput: one session at a time, and four at once.
  const auto runs_per_second = [&](int threads, int runs) {
    const double us = microseconds([&] {
      std::vector<std::thread> workers;
      for (int t = 0; t < threads; ++t)
        workers.emplace_back([&] {
          for (int i = 0; i < runs; ++i) must(session->run(inputs));
        });
      for (std::thread& worker : workers) worker.join();
    });
    return threads * runs / us * 1e6;
  };
  runs_per_second(4, 1);  // each gets its memory
  double one = 0, four = 0;
  const int runs = std::max(1, static_cast<int>(5e5 / later.best));
  for (int turn = 0; turn < 5; ++turn) {
    one = std::max(one, runs_per_second(1, 4 * runs));
    four = std::max(four, runs_per_second(4, runs));
  }
  std::printf("throughput one session %.2f runs/s, four at once %.2f: ratio %.3f\n", one, four,
              four / one);
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
