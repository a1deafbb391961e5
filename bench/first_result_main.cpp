// hologram-first-result: what the first opening and the first result of an archive cost a process
// that has done nothing else. Each sample is a process of its own, and archives take turns:
//   hologram-first-result [--processes N] MODEL.holo...
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/session/session.h"
#include "support/aligned.h"
#include "support/config.h"
#include "support/file.h"

extern char** environ;

namespace hologram::bench {
namespace {

using kernels::Dims;
using kernels::Tensor;
using kernels::Value;
using runtime::Session;
using Clock = std::chrono::steady_clock;

template <typename T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
  std::exit(1);
}

double microseconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
double median_of(int count, const std::function<void()>& body) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(microseconds(body));
  return median(std::move(times));
}

double minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}
double peak_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// What one process measures; times in microseconds.
enum Figure { open, open_faults, reopen, first_run, run_faults, later, fault_time, peak, kFigures };
using Sample = std::array<double, kFigures>;

std::vector<Value> inputs_of(const Session& session) {
  std::vector<Value> inputs;
  for (const auto& port : session.inputs()) {
    Dims dims;
    if (port.shape)
      for (const Dim& dim : *port.shape) dims.push_back(dim.is_symbol() ? 64 : dim.value());
    inputs.emplace_back(must(Tensor::allocate(port.dtype, dims)));
    std::memset(inputs.back().tensor.data, 0, inputs.back().tensor.bytes());
  }
  return inputs;
}

// The time it takes to touch every page of `bytes` for the first time, by as many threads as a run
// has; without what touching them costs later.
double touch(std::span<const std::byte> bytes, bool write) {
  volatile auto* at = const_cast<std::byte*>(bytes.data());
  const auto pass = [&] {
    constexpr size_t kPage = 4096;
    ThreadPool::shared().parallel_for(bytes.size() / kPage, 64, [&](size_t begin, size_t end) {
      for (size_t page = begin; page < end; ++page)
        if (write)
          at[page * kPage] = std::byte{1};
        else
          (void)at[page * kPage];
    });
  };
  const double first = microseconds(pass);
  return std::max(0.0, first - microseconds(pass));
}

// Faults of the pages that a first run needs: the archive's, in a map of its own, and as much fresh
// memory as there are activations.
double fault_time_of(const char* path, uint64_t activations) {
  const FileMap map = must(FileMap::open(path));
  const AlignedBytes fresh = must(AlignedBytes::allocate(std::max<uint64_t>(activations, 4096)));
  return touch(map.bytes(), false) + touch(fresh.bytes(), true);
}

Sample measure(const char* path) {
  Sample sample{};
  std::optional<Session> session;
  const double at_start = minor_faults();
  sample[open] = microseconds([&] { session.emplace(must(Session::open(path))); });
  sample[open_faults] = minor_faults() - at_start;
  const std::vector<Value> inputs = inputs_of(*session);
  const double before = minor_faults();
  bool runs = true;
  sample[first_run] = microseconds([&] { runs = session->run(inputs).has_value(); });
  sample[run_faults] = minor_faults() - before;
  sample[peak] = peak_mb();
  sample[reopen] = median_of(50, [&] { must(Session::open(path)); });
  if (!runs) return sample;  // zeros are no input for it
  sample[later] = median_of(7, [&] { (void)session->run(inputs); });
  std::vector<Dims> shapes;
  for (const Value& input : inputs) shapes.push_back(input.tensor.dims);
  sample[fault_time] = fault_time_of(path, must(session->bind(shapes)).activation_bytes);
  return sample;
}

// In a fresh process, whose figures come back through a pipe.
std::optional<Sample> measure_apart(const char* self, const char* path) {
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  const char* arguments[] = {self, "--sample", path, nullptr};
  pid_t child = 0;
  const bool started =
      posix_spawn(&child, self, &actions, nullptr, const_cast<char**>(arguments), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Sample sample{};
  const bool whole = read(ends[0], sample.data(), sizeof(sample)) == sizeof(sample);
  close(ends[0]);
  int status = 1;
  if (started) waitpid(child, &status, 0);
  if (!started || status != 0 || !whole) return std::nullopt;
  return sample;
}

using FigureOf = std::function<double(const Sample&)>;

// One line of the table: the middle, least and most of all processes.
void line(const char* what, const std::vector<Sample>& samples, const FigureOf& figure,
          const char* unit, const std::string& note = "") {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(figure(sample));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::printf("  %-46s %8.2f %8.2f %8.2f %-3s %s\n", what, median(values), *least, *most, unit,
              note.c_str());
}

void report(const char* path, const std::vector<Sample>& samples) {
  const auto middle = [&](Figure figure) {
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(sample[figure]);
    return std::to_string(std::llround(median(std::move(values))));
  };
  const auto milliseconds = [](Figure figure) {
    return [=](const Sample& s) { return s[figure] / 1e3; };
  };
  const auto first = [](const Sample& s) { return s[open] + s[first_run]; };
  std::printf("%s: %zu processes, %u threads\n  %-46s %8s %8s %8s\n", path, samples.size(),
              ThreadPool::shared().size(), "", "median", "least", "most");
  line("opening, the first of a process", samples, milliseconds(open), "ms",
       middle(open_faults) + " page faults");
  line("opening again", samples, milliseconds(reopen), "ms");
  if (samples.front()[later] == 0) {
    std::printf("  no results: zeros are no input for this model\n");
    return;
  }
  line(
      "first result, with opening", samples, [&](const Sample& s) { return first(s) / 1e3; }, "ms",
      middle(run_faults) + " page faults, peak " + middle(peak) + " MB");
  line("a later result", samples, milliseconds(later), "ms");
  line("page faults: archive and fresh activations", samples, milliseconds(fault_time), "ms",
       "touched alone");
  line(
      "first / later", samples, [&](const Sample& s) { return first(s) / s[later]; }, "");
  line(
      "(first - page faults) / later", samples,
      [&](const Sample& s) { return (first(s) - s[fault_time]) / s[later]; }, "",
      "aim: at most 1.20");
}

int main_of(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--sample") == 0) {
    const Sample sample = measure(argv[2]);
    return write(STDOUT_FILENO, sample.data(), sizeof(sample)) == sizeof(sample) ? 0 : 1;
  }
  int processes = 15;
  std::vector<const char*> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--processes") == 0 && i + 1 < argc)
      processes = std::max(1, std::atoi(argv[++i]));
    else
      paths.push_back(argv[i]);
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: %s [--processes N] MODEL.holo...\n", argv[0]);
    return 2;
  }
  if (const auto config = load_config(); !config) {
    std::fprintf(stderr, "error: %s\n", config.error().to_string().c_str());
    return 2;
  }
  std::vector<std::vector<Sample>> samples(paths.size());
  for (int turn = 0; turn < processes; ++turn)
    for (size_t i = 0; i < paths.size(); ++i) {
      const auto sample = measure_apart("/proc/self/exe", paths[i]);
      if (!sample) return 1;
      samples[i].push_back(*sample);
    }
  for (size_t i = 0; i < paths.size(); ++i) report(paths[i], samples[i]);
  return 0;
}

}  // namespace
}  // namespace hologram::bench

int main(int argc, char** argv) { return hologram::bench::main_of(argc, argv); }
