// hologram-compare: Hologram and ONNX Runtime in one process, alternately, on the same inputs.
//
// Each combination of model and thread count runs in a child process of its own, because thread
// pools are made once a process. Peak memory is taken in two more children that each run one side.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "bench/peers/agreement.h"
#include "compiler/compile.h"
#include "runtime/session/session.h"
#include "support/file.h"

namespace {

using namespace hologram;
using nlohmann::json;
using peers::difference;
using peers::OnnxRuntime;
using peers::OutputError;
using peers::PeerTensor;
using peers::to_values;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

double peak_mb() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Floats are normal; integers are small tokens; masks are ones. Open dimensions become 1.
std::vector<PeerTensor> draw_inputs(const std::vector<PeerTensor>& ports) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<PeerTensor> inputs = ports;
  for (PeerTensor& tensor : inputs) {
    uint64_t count = 1;
    for (int64_t& dim : tensor.shape) count *= static_cast<uint64_t>(dim = dim < 0 ? 1 : dim);
    tensor.data.assign(bytes_for(tensor.type, count), std::byte{0});
    const bool mask = tensor.name.find("mask") != std::string::npos;
    for (uint64_t i = 0; i < count; ++i) {
      const int64_t token = mask ? 1 : static_cast<int64_t>(random() % 1000);
      const float value = normal(random);
      std::byte* at = tensor.data.data() + i * size_of(tensor.type);
      if (tensor.type == DType::f32)
        std::memcpy(at, &value, 4);
      else if (tensor.type == DType::i64)
        std::memcpy(at, &token, 8);
      else if (tensor.type == DType::i32)
        std::memcpy(at, &token, 4);
      else
        std::memset(at, mask ? 1 : 0, size_of(tensor.type));
    }
  }
  return inputs;
}

struct Job {
  fs::path model, archive;
  std::string precision = "f32";
  int threads = 1, runs = 20;
};

// One side alone, for its peak memory.
Result<double> memory_of(const Job& job, bool hologram, OnnxRuntime& peer) {
  if (!hologram) {
    HOLOGRAM_TRY(const auto session, peer.open(job.model, job.threads));
    HOLOGRAM_CHECK(session->run_only(draw_inputs(session->inputs())));
    return peak_mb();
  }
  HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(job.archive));
  std::vector<PeerTensor> ports;
  for (const auto& port : session.inputs()) {
    PeerTensor tensor{port.name, port.dtype, {}, {}};
    if (port.shape)
      for (const Dim& dim : *port.shape) tensor.shape.push_back(dim.is_symbol() ? -1 : dim.value());
    ports.push_back(std::move(tensor));
  }
  HOLOGRAM_TRY(const auto inputs, to_values(session, draw_inputs(ports)));
  HOLOGRAM_CHECK(session.run(inputs));
  return peak_mb();
}

Result<json> measure(const Job& job, OnnxRuntime& peer) {
  auto start = Clock::now();
  HOLOGRAM_TRY(const auto theirs, peer.open(job.model, job.threads));
  const double ort_open = ms_since(start);
  start = Clock::now();
  HOLOGRAM_TRY(const runtime::Session ours, runtime::Session::open(job.archive));
  const double our_open = ms_since(start);
  const std::vector<PeerTensor> inputs = draw_inputs(theirs->inputs());
  HOLOGRAM_TRY(const auto values, to_values(ours, inputs));
  start = Clock::now();
  HOLOGRAM_TRY(const auto results, ours.run(values));
  const double our_first = ms_since(start);
  start = Clock::now();
  HOLOGRAM_TRY(const auto expected, theirs->run(inputs));
  const double ort_first = ms_since(start);
  HOLOGRAM_TRY(const OutputError error, difference(results, expected));
  std::vector<double> our_ms, ort_ms, ratios;
  for (int i = 0; i < job.runs; ++i) {
    start = Clock::now();
    HOLOGRAM_CHECK(ours.run(values));
    our_ms.push_back(ms_since(start));
    start = Clock::now();
    HOLOGRAM_CHECK(theirs->run_only(inputs));
    ort_ms.push_back(ms_since(start));
    ratios.push_back(our_ms.back() / ort_ms.back());
  }
  std::sort(ratios.begin(), ratios.end());
  const auto quantile = [&](double q) {
    return ratios[static_cast<size_t>(q * static_cast<double>(ratios.size() - 1))];
  };
  return json{{"model", job.model.stem().string()},
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
              {"hologram_open_ms", our_open},
              {"ort_open_ms", ort_open},
              {"max_error", error.max},
              {"rms_error", error.rms}};
}

// Runs `body` in a child with `threads` threads; its JSON comes back through a pipe.
template <typename Body>
json in_child(int threads, Body body) {
  int ends[2];
  if (pipe(ends) != 0) return json{{"error", "no pipe"}};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    setenv("HOLOGRAM_NUM_THREADS", std::to_string(threads).c_str(), 1);
    const std::string text = body().dump();
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t written = write(ends[1], text.data() + done, text.size() - done);
      if (written <= 0) break;
      done += static_cast<size_t>(written);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  json result = json::parse(text, nullptr, false);
  return result.is_discarded() ? json{{"error", "the process died"}} : result;
}

json compare(const Job& job, std::span<const fs::path> folders) {
  const auto with_peer = [&](auto use) {
    return in_child(job.threads, [&]() -> json {
      auto peer = OnnxRuntime::load(folders);
      if (!peer) return {{"error", peer.error().to_string()}};
      return use(**peer);
    });
  };
  json row = with_peer([&](OnnxRuntime& peer) -> json {
    auto measured = measure(job, peer);
    return measured ? *measured : json{{"error", measured.error().to_string()}};
  });
  if (row.contains("error")) return row;
  for (const bool hologram : {true, false}) {
    const json peak = with_peer([&](OnnxRuntime& peer) -> json {
      const auto megabytes = memory_of(job, hologram, peer);
      return megabytes ? json(*megabytes) : json{{"error", megabytes.error().to_string()}};
    });
    if (peak.is_number()) row[hologram ? "hologram_peak_mb" : "ort_peak_mb"] = peak;
  }
  return row;
}

Status compile_model(const Job& job) {
  compiler::CompileOptions options;
  HOLOGRAM_TRY(options.precision, compiler::parse_precision(job.precision));
  HOLOGRAM_TRY(const auto bytes, compiler::compile_onnx(job.model, options));
  return write_file(job.archive, bytes);
}

void print_row(const json& row) {
  const auto number = [&](const char* name) { return row.value(name, 0.0); };
  fmt::print(
      "{:<24} {:>9} {:>7} {:>12.3f} {:>12.3f} {:>8.3f} ({:.3f}..{:.3f}) {:>9.3f} {:>10.1f} "
      "{:>10.1e} {:>8.0f} ({:.0f})\n",
      row["model"].get<std::string>(), row["precision"].get<std::string>(),
      row["threads"].get<int>(), number("hologram_ms"), number("ort_ms"), number("ratio"),
      number("ratio_low"), number("ratio_high"), number("hologram_open_ms"), number("ort_open_ms"),
      number("max_error"), number("hologram_peak_mb"), number("ort_peak_mb"));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Compares Hologram with ONNX Runtime: the same models and inputs, in one process, "
      "alternately.");
  std::vector<std::string> models, ort_folders{"."};
  std::vector<int> threads{1, 2};
  std::vector<std::string> precisions{"f32"};
  int runs = 20;
  std::string json_file;
  app.add_option("models", models, "ONNX models")->required();
  app.add_option("--threads", threads, "Thread counts")->delimiter(',');
  app.add_option("--precision", precisions, "Of Hologram: f32, fast, bf16")->delimiter(',');
  app.add_option("--runs", runs, "Runs of each side")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", json_file, "Write the rows to this file");
  app.add_option("--ort", ort_folders,
                 "Folders whose node_modules hold onnxruntime-node; HOLOGRAM_ORT_LIB comes first");
  CLI11_PARSE(app, argc, argv);

  const std::vector<fs::path> folders(ort_folders.begin(), ort_folders.end());
  json rows = json::array();
  std::map<std::string, std::vector<double>> logarithms;  // of the ratios, by precision
  size_t good = 0;
  fmt::print("{:<24} {:>9} {:>7} {:>12} {:>12} {:>22} {:>10} {:>10} {:>10} {:>17}\n", "model",
             "precision", "threads", "hologram ms", "ort ms", "ratio (10..90%)", "open ms",
             "ort open", "max error", "peak MB (ort)");
  for (const std::string& model : models) {
    for (const std::string& precision : precisions) {
      Job job{model,
              fs::temp_directory_path() /
                  fmt::format("compare-{}-{}.holo", getpid(), fs::path(model).stem().string()),
              precision, 1, runs};
      const json compiled = in_child(0, [&]() -> json {
        const Status written = compile_model(job);
        return written ? json(true) : json{{"error", written.error().to_string()}};
      });
      for (const int count : threads) {
        job.threads = count;
        json row = compiled.is_boolean() ? compare(job, folders) : compiled;
        if (row.contains("error")) {
          row["model"] = job.model.stem().string();
          row["threads"] = count;
          row["precision"] = precision;
          fmt::print("{:<24} {:>9} {:>7} {}\n", job.model.stem().string(), precision, count,
                     row["error"].get<std::string>());
        } else {
          print_row(row);
          logarithms[precision].push_back(std::log(row["ratio"].get<double>()));
          ++good;
        }
        std::fflush(stdout);
        rows.push_back(std::move(row));
      }
      std::error_code ignored;
      fs::remove(job.archive, ignored);
    }
  }
  for (const auto& [precision, values] : logarithms)
    fmt::print("{}: geometric mean of the ratios {:.3f} over {} rows\n", precision,
               std::exp(std::accumulate(values.begin(), values.end(), 0.0) /
                        static_cast<double>(values.size())),
               values.size());
  if (!json_file.empty()) {
    if (const auto written = write_file(json_file, std::string_view(rows.dump(2) + "\n"));
        !written) {
      fmt::print(stderr, "error: {}\n", written.error().to_string());
      return 2;
    }
  }
  return good == rows.size() ? 0 : 1;
}
