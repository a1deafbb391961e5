// hologram-models: every model of a table, compiled and compared with ONNX Runtime.
//
// Each model has a process of its own: one that crashes or hangs is one failure, and its memory is
// given back.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

#include "bench/peers/agreement.h"
#include "compiler/compile.h"
#include "inputs.h"
#include "support/file.h"

namespace {

using namespace hologram;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr double kTolerance = 1e-3;   // of the range of an output
constexpr double kLeastRange = 1e-4;  // of the magnitude of an output
constexpr unsigned kSecondsEach = 600;

struct Options {
  fs::path table, packages, architectures;
  std::string filter;
  bool verbose = false;
};

std::string name_of(const ordered_json& model) {
  if (model.contains("architecture")) return model["architecture"];
  if (model.contains("name")) return model["name"];
  return fs::path(model["file"].get<std::string>()).stem().string();
}

// Compiled, written and opened from its map, as a user would.
Result<runtime::Session> compile_and_open(const fs::path& file) {
  const fs::path archive =
      fs::temp_directory_path() / fmt::format("hologram-models-{}.holo", getpid());
  HOLOGRAM_TRY(const auto bytes, compiler::compile_onnx(file));
  HOLOGRAM_CHECK(write_file(archive, bytes));
  auto session = runtime::Session::open(archive);
  fs::remove(archive);  // the map keeps it
  return session;
}

// The worst output. One without finite values, or with nearly one value, would prove nothing.
Result<peers::OutputError> worst(std::span<const kernels::Value> ours,
                                 std::span<const peers::PeerTensor> theirs, bool verbose) {
  if (ours.size() != theirs.size())
    return fail(ErrorCode::shape_mismatch, "{} outputs, ONNX Runtime has {}", ours.size(),
                theirs.size());
  peers::OutputError worst;
  for (size_t i = 0; i < ours.size(); ++i) {
    HOLOGRAM_TRY(const peers::OutputError error, peers::difference(ours[i], theirs[i]));
    const int64_t count = ours[i].tensor.count();
    if (verbose)
      fmt::print("  {:<48} max {:.1e}  rms {:.1e}  range {:.3g}\n", theirs[i].name, error.max,
                 error.rms, error.range);
    if (theirs[i].type == DType::f32 && count > 1 &&
        !(error.range > kLeastRange * error.magnitude && std::isfinite(error.range)))
      return fail(ErrorCode::invalid_argument,
                  "output '{}' is nearly one value in ONNX Runtime: choose other inputs or weights",
                  theirs[i].name);
    if (error.max >= worst.max) worst = error;
  }
  return worst;
}

// "3 runs, max error 2.1e-06", or what is wrong.
Result<std::string> compare(const fs::path& file, const ordered_json& model,
                            const Options& options) {
  HOLOGRAM_TRY(const runtime::Session session, compile_and_open(file));
  const fs::path folders[] = {options.packages};
  HOLOGRAM_TRY(const auto peer, peers::OnnxRuntime::load(folders));
  HOLOGRAM_TRY(const auto theirs, peer->open(file, 1));
  std::string errors;
  bool good = true;
  for (const ordered_json& run : model["runs"]) {
    HOLOGRAM_TRY(const auto inputs, models::make_inputs(theirs->inputs(), run));
    HOLOGRAM_TRY(const auto expected, theirs->run(inputs));
    HOLOGRAM_TRY(const auto values, peers::to_values(session, inputs));
    HOLOGRAM_TRY(const auto results, session.run(values));
    HOLOGRAM_TRY(const peers::OutputError error, worst(results, expected, options.verbose));
    errors += fmt::format("{}{:.1e}", errors.empty() ? "" : ", ", error.max);
    if (!(error.max <= kTolerance)) good = false;
  }
  if (!good)
    return fail(ErrorCode::internal,
                "maximal errors of the output's range: {}; at most {} is asked", errors,
                kTolerance);
  return "maximal error of each run " + errors;
}

// Runs compare() in a child. The text goes through a pipe, the verdict is the exit code.
bool in_child(const fs::path& file, const ordered_json& model, const Options& options,
              std::string& text) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kSecondsEach);
    const auto result = compare(file, model, options);
    const std::string line = result ? *result : result.error().to_string();
    const ssize_t written = write(ends[1], line.data(), std::min<size_t>(line.size(), 60000));
    std::fflush(stdout);
    _exit(result && written >= 0 ? 0 : 1);
  }
  close(ends[1]);
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) text = fmt::format("died: {}", strsignal(WTERMSIG(status)));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compares Hologram with ONNX Runtime on the models of a table.");
  Options options;
  app.add_option("table", options.table, "models.json")->required();
  app.add_option("--packages", options.packages, "The folder whose node_modules holds the packages")
      ->required();
  app.add_option("--architectures", options.architectures,
                 "The folder with NAME.onnx and NAME.bin; without it those are left out");
  app.add_option("--filter", options.filter, "Only models whose name contains this");
  app.add_flag("--verbose", options.verbose, "Show the error of every output");
  CLI11_PARSE(app, argc, argv);

  std::ifstream file(options.table);
  const ordered_json table = ordered_json::parse(file, nullptr, false);
  if (!table.is_array()) {
    fmt::print(stderr, "error: '{}' is no table of models\n", options.table.string());
    return 2;
  }
  int good = 0, bad = 0, left_out = 0;
  for (const ordered_json& model : table) {
    const std::string name = name_of(model);
    if (name.find(options.filter) == std::string::npos) continue;
    const bool architecture = model.contains("architecture");
    if (architecture && options.architectures.empty()) {
      ++left_out;
      continue;
    }
    const fs::path path =
        architecture ? options.architectures / (name + ".onnx")
                     : options.packages / "node_modules" / model["file"].get<std::string>();
    std::string text;
    const auto start = std::chrono::steady_clock::now();
    const bool agrees = in_child(path, model, options, text);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fmt::print("{} {:<24} {:6.1f} s  {}\n", agrees ? "ok  " : "FAIL", name, seconds.count(), text);
    std::fflush(stdout);
    ++(agrees ? good : bad);
  }
  if (left_out > 0)
    fmt::print("{} architectures left out: no folder given with --architectures\n", left_out);
  fmt::print("{} models agree with ONNX Runtime, {} do not\n", good, bad);
  return bad == 0 && good > 0 ? 0 : 1;
}
