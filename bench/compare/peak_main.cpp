// hologram-peak JOB: opens a model, runs it three times, and prints what memory that took; started
// by hologram-compare, whose own memory would be counted otherwise. JOB is JSON, see memory.cpp.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "archive/signature.h"
#include "bench/compare/model_inputs.h"
#include "bench/peers/agreement.h"
#include "runtime/session/session.h"
#include "support/config.h"

namespace hologram::compare {
namespace {

using nlohmann::json;
using peers::PeerTensor;
namespace fs = std::filesystem;

// A line of /proc/self/status, in MB. The peak is this program's own: getrusage counts that of the
// process it was started by.
double status_mb(std::string_view name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return std::stod(line.substr(name.size() + 1)) / 1024;
  return 0;
}

// Takes a file out of the system's memory, as if it had been there since before the machine was
// started. One that was just written is kept in pieces of up to 2 MiB, and whoever reads a row of a
// table has all of its piece.
void forget(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)fdatasync(descriptor);
  (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  close(descriptor);
}

// What the first run gives back the second may need.
constexpr int kRuns = 3;

// Once the model has run and is still open.
json figures() { return {{"peak_mb", status_mb("VmHWM:")}, {"private_mb", status_mb("RssAnon:")}}; }

Result<json> run_ours(const json& job, const ModelEntry& entry) {
  std::vector<archive::PublicKey> keys;
  if (job.contains("key")) {
    HOLOGRAM_TRY(keys.emplace_back(), archive::PublicKey::parse(job["key"].get<std::string>()));
  }
  const archive::OpenOptions options{.trusted =
                                         std::make_shared<archive::TrustedKeys>(std::move(keys))};
  forget(job["archive"].get<std::string>());
  HOLOGRAM_TRY(const runtime::Session session,
               runtime::Session::open(job["archive"].get<std::string>(), options));
  HOLOGRAM_TRY(auto drawn, draw_inputs(entry, ports_of(session)));
  HOLOGRAM_TRY(const auto inputs, peers::to_values(session, drawn));
  drawn = {};  // they were copied
  for (int i = 0; i < kRuns; ++i) HOLOGRAM_CHECK(session.run(inputs));
  return figures();
}

Result<json> run_theirs(const json& job, const ModelEntry& entry) {
  std::vector<fs::path> folders;
  for (const json& folder : job.value("folders", json::array()))
    folders.emplace_back(folder.get<std::string>());
  HOLOGRAM_TRY(const auto peer, peers::OnnxRuntime::load(folders));
  // The model, and the weights beside it.
  const fs::path model = job["model"].get<std::string>();
  for (const fs::directory_entry& file : fs::directory_iterator(model.parent_path()))
    if (file.path().stem() == model.stem()) forget(file.path());
  HOLOGRAM_TRY(const auto session,
               peer->open(job["model"].get<std::string>(), job["threads"].get<int>()));
  HOLOGRAM_TRY(const auto inputs, draw_inputs(entry, session->inputs()));
  for (int i = 0; i < kRuns; ++i) HOLOGRAM_CHECK(session->run_only(inputs));
  return figures();
}

int main_of(const char* text) {
  const json job = json::parse(text, nullptr, false);
  if (!job.is_object() || !job.contains("side") || !job.contains("run")) {
    fmt::print(stderr, "error: no job; hologram-compare starts this program\n");
    return 2;
  }
  const ModelEntry entry{"", nlohmann::ordered_json::parse(job["run"].dump())};
  if (const auto config = load_config(); !config) {
    fmt::print(stderr, "error: {}\n", config.error().to_string());
    return 2;
  }
  const Result<json> figures = job["side"] == "ort" ? run_theirs(job, entry) : run_ours(job, entry);
  const json answer = figures ? *figures : json{{"error", figures.error().to_string()}};
  fmt::print("{}\n", answer.dump());
  std::fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace hologram::compare

int main(int argc, char** argv) { return hologram::compare::main_of(argc == 2 ? argv[1] : ""); }
