// hologram-compare: Hologram and ONNX Runtime in one process, alternately, on the same inputs.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "bench/compare/chart.h"
#include "bench/compare/child.h"
#include "bench/compare/measurement.h"
#include "bench/compare/report.h"
#include "support/config.h"
#include "support/file.h"

namespace {

using namespace hologram;
using nlohmann::json;
namespace fs = std::filesystem;

bool save(const std::string& file, const std::string& content) {
  if (file.empty()) return true;
  const auto written = write_file(file, std::string_view(content));
  if (!written) fmt::print(stderr, "error: {}\n", written.error().to_string());
  return written.has_value();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Compares Hologram with ONNX Runtime: the same models and inputs, in one process, "
      "alternately.");
  std::vector<std::string> models, row_files, ort_folders{"."};
  std::vector<int> threads{1, 2};
  std::vector<std::string> precisions{"f32"};
  int runs = 20;
  double seconds = 0;
  uint32_t draws = 1;
  bool profile = false, no_f64 = false, near = false;
  std::string json_file, html_file, docs_file, note, inputs_file = HOLOGRAM_MODELS_TABLE;
  app.add_option("models", models, "ONNX models");
  app.add_option(
      "--rows", row_files,
      "Files that --json wrote, here or on another machine: their rows come first, so that "
      "measurements can be joined; no models are needed then");
  app.add_option("--threads", threads, "Thread counts")->delimiter(',');
  app.add_option("--precision", precisions, "Of Hologram: f32, fast, bf16, int8")->delimiter(',');
  app.add_option("--runs", runs, "Turns of each side")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seconds", seconds,
                 "Take turns for at least so long: short runs beside noisy neighbours need many")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--no-f64", no_f64, "Leave out the comparison of small models with a run in f64");
  app.add_option("--draws", draws,
                 "Inputs that small models are compared with a run in f64 on; the first is timed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--near", near,
               "Let these inputs differ from the first by some units in the last place: the spread "
               "of one input's errors");
  app.add_flag("--profile", profile, "Add the time of each of Hologram's steps to the JSON rows");
  app.add_option("--json", json_file, "Write the rows to this file");
  app.add_option("--html", html_file, "Write a page with a table and a chart to this file");
  app.add_option("--docs", docs_file,
                 "Write a page of the documentation to this file, and its chart beside it");
  app.add_option("--note", note, "A sentence for that page, about how the rows were measured");
  app.add_option("--inputs", inputs_file, "A table of inputs like tests/models/models.json");
  app.add_option("--ort", ort_folders,
                 "Folders whose node_modules hold onnxruntime-node; HOLOGRAM_ORT_LIB comes first");
  CLI11_PARSE(app, argc, argv);
  // Sessions would go on without a configuration, and on other numbers of threads than asked for.
  if (const auto config = load_config(); !config) {
    fmt::print(stderr, "error: {}\n", config.error().to_string());
    return 2;
  }

  const std::vector<fs::path> folders(ort_folders.begin(), ort_folders.end());
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  if (std::ifstream file(inputs_file); file)
    table = nlohmann::ordered_json::parse(file, nullptr, false);
  if (table.is_discarded()) {
    fmt::print(stderr, "error: {} is not JSON\n", inputs_file);
    return 2;
  }
  json rows = json::array();
  for (const std::string& name : row_files) {
    std::ifstream file(name);
    const json read = json::parse(file, nullptr, false);
    if (!read.is_array()) {
      fmt::print(stderr, "error: {} does not hold rows\n", name);
      return 2;
    }
    rows.insert(rows.end(), read.begin(), read.end());
  }
  if (models.empty() && row_files.empty()) {
    fmt::print(stderr, "error: nothing to compare; name models or --rows\n");
    return 2;
  }
  size_t bad = 0;
  const auto key = archive::KeyPair::generate();
  if (!key) {
    fmt::print(stderr, "error: {}\n", key.error().to_string());
    return 2;
  }
  compare::print_header();
  for (const json& row : rows) compare::print_row(row);
  for (const std::string& model : models)
    for (const std::string& precision : precisions) {
      compare::Job job{model,
                       fs::temp_directory_path() / fmt::format("compare-{}-{}.holo", getpid(),
                                                               fs::path(model).stem().string()),
                       compare::find_entry(table, model),
                       precision,
                       1,
                       runs,
                       seconds,
                       profile,
                       !no_f64,
                       draws,
                       near,
                       *key};
      const json compiled = compare::in_child(1, [&] { return compare::compile_model(job); });
      for (const int count : threads) {
        job.threads = count;
        json row = compiled;
        if (!row.contains("error")) row.update(compare::measure(job, folders));
        row["model"] = job.entry.name;
        row["threads"] = count;
        row["precision"] = precision;
        row["machine"] = compare::machine();
        bad += row.contains("error");
        compare::print_row(row);
        std::fflush(stdout);
        rows.push_back(std::move(row));
      }
      std::error_code ignored;
      fs::remove(job.archive, ignored);
    }
  fmt::print("{}", compare::summary(rows));
  const fs::path chart =
      docs_file.empty() ? fs::path() : fs::path(docs_file).replace_extension(".svg");
  const bool saved =
      save(json_file, rows.dump(2) + "\n") &&
      save(html_file, html_file.empty() ? "" : compare::html_page(rows)) &&
      save(docs_file,
           docs_file.empty() ? "" : compare::docs_page(rows, note, chart.filename().string())) &&
      save(chart.string(), compare::ratio_chart(rows));
  return !saved ? 2 : bad == 0 ? 0 : 1;
}
