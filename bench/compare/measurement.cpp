#include "bench/compare/measurement.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "bench/compare/child.h"
#include "bench/compare/double_check.h"
#include "bench/compare/memory.h"
#include "bench/peers/agreement.h"
#include "compiler/compile_within.h"
#include "runtime/session/session.h"
#include "runtime/session/turns.h"
#include "support/file.h"
#include "support/function_ref.h"

namespace hologram::compare {
namespace {

using nlohmann::json;
using peers::difference;
using peers::OnnxRuntime;
using peers::OutputError;
using peers::PeerTensor;
using peers::to_values;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double processor_ms() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// ONNX Runtime's workers spin for some ten milliseconds after a run; a run of ours on two threads
// would meet them on the second core, as it never does where only one of the two is used. A thread
// that runs elsewhere is charged only at the kernel's ticks, so a shorter look would not see it.
void settle() {
  for (int i = 0; i < 10; ++i) {
    const double before = processor_ms();
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    if (processor_ms() - before < 2) return;
  }
}

archive::OpenOptions trusting(const Job& job) {
  std::vector<archive::PublicKey> keys;
  if (job.key) keys.push_back(job.key->public_key());
  return {.trusted = std::make_shared<archive::TrustedKeys>(std::move(keys))};
}

// Medians of our and their openings, in turns like the runs: what the first of a process costs more
// is shown apart. Fewer where opening takes seconds.
Result<std::pair<double, double>> later_openings(double first_ms, FunctionRef<Status()> open_ours,
                                                 FunctionRef<Status()> open_theirs) {
  const int turns = std::clamp(static_cast<int>(500 / first_ms), 1, 7);
  const auto timed = [](FunctionRef<Status()> open) -> Result<double> {
    constexpr int kRepeats = 3;
    settle();
    HOLOGRAM_CHECK(open());  // warms the caches the other side has used
    const auto begin = Clock::now();
    for (int i = 0; i < kRepeats; ++i) HOLOGRAM_CHECK(open());
    return ms_since(begin) / kRepeats;
  };
  std::vector<double> ours, theirs;
  for (int turn = 0; turn < turns; ++turn) {
    HOLOGRAM_TRY(const double b, timed(open_theirs));
    HOLOGRAM_TRY(const double a, timed(open_ours));
    ours.push_back(a);
    theirs.push_back(b);
  }
  return std::pair(median(std::move(ours)), median(std::move(theirs)));
}

// The first input, each time some units in the last place larger: its errors are drawn anew.
Result<std::vector<peers::PeerTensor>> inputs_of_draw(const Job& job,
                                                      const std::vector<peers::PeerTensor>& ports,
                                                      uint32_t draw) {
  HOLOGRAM_TRY(auto inputs, draw_inputs(job.entry, ports, job.near ? 0 : draw));
  if (!job.near) return inputs;
  for (peers::PeerTensor& input : inputs) {
    if (input.type != DType::f32) continue;
    for (size_t at = 0; at < input.data.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, input.data.data() + at, sizeof(value));
      value *= 1.0f + static_cast<float>(draw) * 3e-6f;
      std::memcpy(input.data.data() + at, &value, sizeof(value));
    }
  }
  return inputs;
}

// Errors against f64: of the first draw, and over all draws their mean and the largest; of both,
// and where there are several also of f64 whose results are rounded to f32.
Status compare_with_double(const Job& job, const runtime::Session& ours,
                           peers::OnnxRuntime::Session& theirs, json& row) {
  struct Errors {
    double sum = 0, worst = 0;
    void add(double error) {
      sum += error;
      worst = std::max(worst, error);
    }
  };
  Errors own, peer, rounding;
  for (uint32_t draw = 0; draw < job.draws; ++draw) {
    HOLOGRAM_TRY(const auto inputs, inputs_of_draw(job, theirs.inputs(), draw));
    const auto exact = run_in_double(job.model, inputs);
    if (!exact) return {};
    HOLOGRAM_TRY(const auto values, to_values(ours, inputs));
    HOLOGRAM_TRY(const auto results, ours.run(values));
    HOLOGRAM_TRY(const auto expected, theirs.run(inputs));
    HOLOGRAM_TRY(const auto peer_values, to_outputs(expected));
    HOLOGRAM_TRY(const OutputError error, difference_from_double(*exact, results));
    HOLOGRAM_TRY(const OutputError ort_error, difference_from_double(*exact, peer_values));
    if (draw == 0) {
      row["max_error_f64"] = error.max;
      row["rms_error_f64"] = error.rms;
      row["ort_max_error_f64"] = ort_error.max;
    }
    own.add(error.max);
    peer.add(ort_error.max);
    if (job.draws == 1) continue;
    HOLOGRAM_TRY(const auto rounded, run_in_double(job.model, inputs, true));
    HOLOGRAM_TRY(const OutputError least, difference_from_double(*exact, rounded));
    rounding.add(least.max);
  }
  row["draws"] = {{"count", job.draws},
                  {"mean_error", own.sum / job.draws},
                  {"max_error", own.worst},
                  {"ort_mean_error", peer.sum / job.draws},
                  {"ort_max_error", peer.worst},
                  {"rounding_mean_error", rounding.sum / job.draws},
                  {"rounding_max_error", rounding.worst}};
  return {};
}

Result<json> measure_both(const Job& job, std::span<const std::filesystem::path> folders) {
  HOLOGRAM_TRY(const auto peer, OnnxRuntime::load(folders));
  const auto options = trusting(job);
  auto start = Clock::now();
  HOLOGRAM_TRY(const auto theirs, peer->open(job.model, job.threads));
  const double ort_first_open = ms_since(start);
  settle();
  start = Clock::now();
  HOLOGRAM_TRY(const runtime::Session ours, runtime::Session::open(job.archive, options));
  const double our_first_open = ms_since(start);
  HOLOGRAM_TRY(const auto opens, later_openings(
                                     ort_first_open,
                                     [&]() -> Status {
                                       HOLOGRAM_CHECK(runtime::Session::open(job.archive, options));
                                       return {};
                                     },
                                     [&]() -> Status {
                                       HOLOGRAM_CHECK(peer->open(job.model, job.threads));
                                       return {};
                                     }));
  HOLOGRAM_TRY(const std::vector<PeerTensor> inputs, draw_inputs(job.entry, theirs->inputs()));
  HOLOGRAM_TRY(const auto values, to_values(ours, inputs));
  start = Clock::now();
  HOLOGRAM_TRY(const auto results, ours.run(values));
  const double our_first = ms_since(start);
  start = Clock::now();
  HOLOGRAM_TRY(const auto expected, theirs->run(inputs));
  const double ort_first = ms_since(start);
  HOLOGRAM_TRY(const OutputError error, difference(results, expected));
  std::vector<double> our_ms, ort_ms, ratios;
  // Short runs are repeated within a turn, so that a turn is not lost in the clock.
  int repeats = 1;
  const auto timed = [&](auto run) -> Result<double> {
    settle();
    HOLOGRAM_CHECK(run());  // wakes the threads and warms the caches the other side has used
    const auto begin = Clock::now();
    for (int r = 0; r < repeats; ++r) HOLOGRAM_CHECK(run());
    return ms_since(begin) / repeats;
  };
  const auto run_ours = [&]() -> Status {
    HOLOGRAM_CHECK(ours.run(values));
    return {};
  };
  const auto run_theirs = [&] { return theirs->run_only(inputs); };
  HOLOGRAM_TRY(const double our_second, timed(run_ours));
  HOLOGRAM_TRY(const double ort_second, timed(run_theirs));
  const double shortest = std::max(1e-3, std::min(our_second, ort_second));
  repeats = std::clamp(static_cast<int>(2 / shortest), 1, 50);
  const auto first_turn = Clock::now();
  for (int i = 0; i < job.runs || ms_since(first_turn) < 1e3 * job.seconds; ++i) {
    HOLOGRAM_TRY(const double a, timed(run_ours));
    HOLOGRAM_TRY(const double b, timed(run_theirs));
    our_ms.push_back(a);
    ort_ms.push_back(b);
    ratios.push_back(a / b);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto quantile = [&](double q) {
    return ratios[static_cast<size_t>(q * static_cast<double>(ratios.size() - 1))];
  };
  json row{{"model", job.entry.name},
           {"threads", job.threads},
           {"precision", job.precision},
           {"hologram_ms", median(our_ms)},
           {"ort_ms", median(ort_ms)},
           {"ratio", median(our_ms) / median(ort_ms)},
           {"ratio_low", quantile(0.1)},
           {"ratio_high", quantile(0.9)},
           {"hologram_best_ms", *std::min_element(our_ms.begin(), our_ms.end())},
           {"ort_best_ms", *std::min_element(ort_ms.begin(), ort_ms.end())},
           {"hologram_first_ms", our_first},
           {"ort_first_ms", ort_first},
           {"hologram_open_ms", opens.first},
           {"ort_open_ms", opens.second},
           {"hologram_first_open_ms", our_first_open},
           {"ort_first_open_ms", ort_first_open},
           {"max_error", error.max},
           {"rms_error", error.rms},
           {"ort_version", peer->version()}};
  if (job.profile) {
    std::vector<runtime::StepTime> steps;
    std::vector<std::vector<double>> times;
    for (int i = 0; i < job.runs; ++i) {
      steps.clear();
      HOLOGRAM_CHECK(ours.profile(values, steps));
      times.resize(steps.size());
      for (size_t s = 0; s < steps.size(); ++s) times[s].push_back(steps[s].milliseconds);
    }
    for (size_t s = 0; s < steps.size(); ++s)
      row["steps"].push_back({steps[s].name, steps[s].kernel, median(times[s])});
  }
  // Only where the model is small: the plain kernels that run in f64 are slow.
  if (job.exact && std::filesystem::file_size(job.archive) <= kLargestDoubleCheck)
    HOLOGRAM_CHECK(compare_with_double(job, ours, *theirs, row));
  return row;
}

}  // namespace

namespace {
// What the archive in job.archive gives for the job's inputs.
Result<std::vector<kernels::Value>> results_of(const Job& job) {
  HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(job.archive, trusting(job)));
  HOLOGRAM_TRY(const auto drawn, draw_inputs(job.entry, ports_of(session)));
  HOLOGRAM_TRY(const auto inputs, to_values(session, drawn));
  HOLOGRAM_TRY(const auto results, session.run(inputs));
  std::vector<kernels::Value> own;  // results lie in the session's memory
  for (const kernels::Value& result : results) {
    HOLOGRAM_TRY(own.emplace_back(), result.clone());
  }
  return own;
}

// Errors of f32 from f64, on the inputs that are timed and on others like them. --draws shows
// inputs that, but for the timed one, had no part in this.
class ErrorsFromDouble {
 public:
  explicit ErrorsFromDouble(const Job& job) : job_(job) {}

  // Of the archive in job.archive; NaN where there is no f64 of the model.
  Result<double> of_timed_inputs() {
    HOLOGRAM_TRY(const OutputError error, error_of(0));
    return is_known() ? error.max : std::nan("");
  }
  Result<double> of_all() {
    std::vector<compiler::InputError> errors;
    for (uint32_t draw = 0; draw < kDraws; ++draw) {
      HOLOGRAM_TRY(const OutputError error, error_of(draw));
      errors.push_back({error.max, error.rms});
    }
    return steady_.largest(errors);
  }

 private:
  static constexpr uint32_t kDraws = 16, kApart = 1000;

  bool is_known() const { return !exact_.empty() && !exact_[0].empty(); }

  Result<OutputError> error_of(uint32_t draw) {
    if (!job_.exact || std::filesystem::file_size(job_.archive) > kLargestDoubleCheck)
      return OutputError();
    HOLOGRAM_TRY(const runtime::Session session,
                 runtime::Session::open(job_.archive, trusting(job_)));
    HOLOGRAM_TRY(const auto inputs,
                 draw_inputs(job_.entry, ports_of(session), draw == 0 ? 0 : kApart + draw));
    if (draw == exact_.size()) {
      auto exact = run_in_double(job_.model, inputs);
      // An operator of it may have no kernel for f64.
      exact_.push_back(exact ? *std::move(exact) : std::vector<kernels::Value>());
    }
    if (exact_[draw].empty()) return OutputError();
    HOLOGRAM_TRY(const auto values, to_values(session, inputs));
    HOLOGRAM_TRY(const auto results, session.run(values));
    return difference_from_double(exact_[draw], results);
  }

  const Job& job_;
  compiler::SteadyError steady_;
  std::vector<std::vector<kernels::Value>> exact_;  // results of each draw
};

// In f32, and where that is off by more than is promised with sums of f64 in places.
Result<compiler::Within> compile_f32(const Job& job, const compiler::CompileOptions& options,
                                     const auto& times_of) {
  ErrorsFromDouble errors(job);
  const auto largest_of = [&](const std::vector<std::byte>& bytes) -> Result<double> {
    HOLOGRAM_CHECK(write_file(job.archive, bytes));
    return errors.of_timed_inputs();
  };
  const auto error_of = [&](const std::vector<std::byte>& bytes) -> Result<double> {
    HOLOGRAM_CHECK(write_file(job.archive, bytes));
    return errors.of_all();
  };
  return compiler::compile_within(job.model, options, compiler::aimed_error(options.precision),
                                  {error_of, times_of, largest_of});
}

// Where a precision promises a bound of its errors, the model is compiled to stay well within it on
// the inputs it is measured with.
Result<json> compile(const Job& job) {
  compiler::CompileReport report;
  compiler::CompileOptions options{.report = &report};
  HOLOGRAM_TRY(options.precision, compiler::parse_precision(job.precision));
  options.key = job.key;
  std::vector<kernels::Value> exact;
  const bool f32 = options.precision == compiler::Precision::f32;
  if (!f32 && compiler::promised_error(options.precision) > 0) {
    HOLOGRAM_TRY(const auto bytes, compiler::compile_onnx(job.model, {.key = job.key}));
    HOLOGRAM_CHECK(write_file(job.archive, bytes));
    HOLOGRAM_TRY(exact, results_of(job));
  }
  const auto error_of = [&](const std::vector<std::byte>& bytes) -> Result<double> {
    HOLOGRAM_CHECK(write_file(job.archive, bytes));
    if (exact.empty()) return 0.0;
    HOLOGRAM_TRY(const auto results, results_of(job));
    double worst = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      const kernels::Tensor& e = exact[i].tensor;
      if (e.dtype != DType::f32) continue;
      const PeerTensor expected{
          "", e.dtype, {e.dims.begin(), e.dims.end()}, {e.data, e.data + e.bytes()}};
      HOLOGRAM_TRY(const OutputError error, difference(results[i], expected));
      worst = std::max(worst, error.max);
    }
    return worst;
  };
  const auto times_of = [&](std::span<const compiler::Trial::Archive> archives)
      -> Result<std::vector<compiler::Trial::Times>> {
    std::vector<runtime::Session> sessions;
    std::vector<std::vector<kernels::Value>> inputs;
    for (size_t i = 0; i < archives.size(); ++i) {
      // A file each: sessions map them.
      Job one = job;
      one.archive += fmt::format(".{}", i);
      HOLOGRAM_CHECK(write_file(one.archive, archives[i]));
      auto session = runtime::Session::open(one.archive, trusting(one));
      std::filesystem::remove(one.archive);
      if (!session) return std::unexpected(std::move(session).error());
      sessions.push_back(*std::move(session));
      HOLOGRAM_TRY(const auto drawn, draw_inputs(job.entry, ports_of(sessions.back())));
      HOLOGRAM_TRY(inputs.emplace_back(), to_values(sessions.back(), drawn));
    }
    return runtime::times_in_turns(sessions, inputs);
  };
  HOLOGRAM_TRY(
      const compiler::Within compiled,
      f32 ? compile_f32(job, options, times_of)
          : compiler::compile_within(job.model, options, compiler::aimed_error(options.precision),
                                     {error_of, times_of}));
  HOLOGRAM_CHECK(write_file(job.archive, compiled.archive));
  return json{{"narrow_steps", report.narrow_steps},
              {"f32_steps", report.wide_steps},
              {"widened_steps", compiled.widened},
              {"steps_are", report.precision_note},
              {"archive_mb", static_cast<double>(compiled.archive.size()) / 1e6}};
}
json to_json(auto result) {
  return result ? json(*std::move(result)) : json{{"error", result.error().to_string()}};
}
}  // namespace

json compile_model(const Job& job) { return to_json(compile(job)); }

json measure(const Job& job, std::span<const std::filesystem::path> folders) {
  json row = in_child(job.threads, [&] { return to_json(measure_both(job, folders)); });
  if (row.contains("error")) return row;
  for (const char* side : {"hologram", "ort"}) {
    const json memory = measure_memory(job, side, folders);
    for (const char* figure : {"peak_mb", "private_mb"})
      if (memory.contains(figure)) row[fmt::format("{}_{}", side, figure)] = memory[figure];
    if (memory.contains("error"))
      fmt::print(stderr, "{} alone: {}\n", side, memory["error"].dump());
  }
  return row;
}

}  // namespace hologram::compare
