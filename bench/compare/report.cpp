#include "bench/compare/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "bench/compare/chart.h"
#include "bench/compare/targets.h"

namespace hologram::compare {
namespace {

using nlohmann::json;

double number(const json& row, const char* name) { return row.value(name, 0.0); }
std::string text(const json& row, const char* name) { return row.value(name, ""); }

std::string escaped(const std::string& plain) {
  std::string result;
  for (const char c : plain) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

// Ours, and the peer's own in brackets; empty where there was no run in f64.
std::string errors_to_f64(const json& row) {
  if (!row.contains("max_error_f64")) return "";
  return fmt::format("{:.1e} ({:.1e})", number(row, "max_error_f64"),
                     number(row, "ort_max_error_f64"));
}

// Openings of one side: their median, and the first of the process in brackets. Rows taken by older
// versions have one opening.
std::string opening(const json& row, const std::string& side) {
  const std::string first = side + "_first_open_ms", median = side + "_open_ms";
  const int digits = side == "ort" ? 1 : 3;
  if (!row.contains(first)) return fmt::format("{:.{}f}", number(row, median.c_str()), digits);
  return fmt::format("{:.{}f} ({:.{}f})", number(row, median.c_str()), digits,
                     number(row, first.c_str()), digits);
}

// Peaks of both sides, and what of ours is private to the process; of ORT nearly all is.
std::string memory(const json& row) {
  std::string result =
      fmt::format("{:.0f} ({:.0f})", number(row, "hologram_peak_mb"), number(row, "ort_peak_mb"));
  if (row.contains("hologram_private_mb"))
    result += fmt::format("; {:.0f} ({:.0f})", number(row, "hologram_private_mb"),
                          number(row, "ort_private_mb"));
  return result;
}

}  // namespace

std::string machine() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, model = "unknown processor";
  while (std::getline(file, line))
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

namespace {

// Where the rows were taken, which need not be here.
std::string machine_of(const json& rows) {
  for (const json& row : rows)
    if (row.contains("machine")) return row["machine"].get<std::string>();
  return machine();
}

std::string peer_version(const json& rows) {
  for (const json& row : rows)
    if (row.contains("ort_version")) return row["ort_version"].get<std::string>();
  return "not loaded";
}

// Of each precision, in the order of the rows.
std::vector<std::pair<std::string, std::vector<double>>> ratios(const json& rows) {
  std::vector<std::pair<std::string, std::vector<double>>> result;
  for (const json& row : rows) {
    if (row.contains("error")) continue;
    const std::string precision = text(row, "precision");
    auto of = std::ranges::find(result, precision, [](const auto& pair) { return pair.first; });
    if (of == result.end()) of = result.insert(of, {precision, {}});
    of->second.push_back(number(row, "ratio"));
  }
  return result;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace

void print_header() {
  fmt::print("{:<24} {:>9} {:>7} {:>12} {:>12} {:>22} {:>15} {:>15} {:>10} {:>19} {:>24}\n",
             "model", "precision", "threads", "hologram ms", "ort ms", "ratio (10..90%)",
             "open ms (first)", "ort open", "max error", "of f64 (ort)", "peak; private MB (ort)");
}

void print_row(const json& row) {
  if (row.contains("error")) {
    fmt::print("{:<24} {:>9} {:>7} {}\n", text(row, "model"), text(row, "precision"),
               row.value("threads", 0), text(row, "error"));
    return;
  }
  // Asked for less than f32, and nothing was to be had by it.
  const bool fell_back = text(row, "precision") != "f32" && row.value("narrow_steps", 1) == 0;
  fmt::print(
      "{:<24} {:>9} {:>7} {:>12.3f} {:>12.3f} {:>8.3f} ({:.3f}..{:.3f}) {:>15} {:>15} "
      "{:>10.1e} {:>19} {:>24}{}\n",
      text(row, "model"), text(row, "precision"), row.value("threads", 0),
      number(row, "hologram_ms"), number(row, "ort_ms"), number(row, "ratio"),
      number(row, "ratio_low"), number(row, "ratio_high"), opening(row, "hologram"),
      opening(row, "ort"), number(row, "max_error"), errors_to_f64(row), memory(row),
      fell_back ? " all in f32" : "");
  const json draws = row.value("draws", json::object());
  if (draws.value("count", 1) > 1)
    fmt::print(
        "  errors against f64 on {} inputs: mean {:.1e}, largest {:.1e}; ORT {:.1e}, {:.1e}; "
        "results "
        "of f64 rounded to f32 {:.1e}, {:.1e}\n",
        draws["count"].get<int>(), number(draws, "mean_error"), number(draws, "max_error"),
        number(draws, "ort_mean_error"), number(draws, "ort_max_error"),
        number(draws, "rounding_mean_error"), number(draws, "rounding_max_error"));
}

std::string summary(const json& rows) {
  std::string result;
  for (const auto& [precision, values] : ratios(rows))
    result += fmt::format(
        "{}: geometric mean of the ratios {:.3f} over {} rows, the worst {:.3f}\n", precision,
        geometric_mean(values), values.size(), *std::max_element(values.begin(), values.end()));
  return result;
}

std::string html_page(const json& rows) {
  std::string table, means;
  for (const json& row : rows) {
    const std::string label = fmt::format("{} {} x{}", text(row, "model"), text(row, "precision"),
                                          row.value("threads", 0));
    if (row.contains("error")) {
      table += fmt::format("<tr><td>{}</td><td colspan=8>{}</td></tr>\n", escaped(label),
                           escaped(text(row, "error")));
      continue;
    }
    table += fmt::format(
        "<tr><td>{}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f} .. "
        "{:.3f}</td><td>{} / {}</td><td>{:.1e} / {:.1e}</td><td>{}</td><td>{}</td></tr>\n",
        escaped(label), number(row, "hologram_ms"), number(row, "ort_ms"), number(row, "ratio"),
        number(row, "ratio_low"), number(row, "ratio_high"), opening(row, "hologram"),
        opening(row, "ort"), number(row, "max_error"), number(row, "rms_error"), errors_to_f64(row),
        memory(row));
  }
  for (const auto& [precision, values] : ratios(rows))
    means += fmt::format("<tr><td>{}</td><td>{:.3f}</td><td>{:.3f}</td><td>{}</td></tr>\n",
                         precision, geometric_mean(values),
                         *std::max_element(values.begin(), values.end()), values.size());
  return fmt::format(
      "<!doctype html><meta charset=utf-8><title>Hologram and ONNX Runtime</title>\n"
      "<style>body{{font:14px system-ui;margin:2em;max-width:70em}}td,th{{padding:2px "
      "10px;text-align:right;white-space:nowrap}}td:first-child{{text-align:left}}tr:nth-child("
      "even){{background:#f4f4f4}}</style>\n"
      "<h1>Hologram and ONNX Runtime</h1><p>{}; ONNX Runtime {}. Time of Hologram divided by the "
      "time of ONNX Runtime, medians of alternating runs in one process: below 1 Hologram is "
      "faster.</p>\n<table><tr><th>precision<th>geometric mean<th>the worst<th>rows</tr>\n{}"
      "</table>\n{}\n"
      "<table><tr><th>model<th>Hologram ms<th>ORT ms<th>ratio<th>10..90%<th>open ms "
      "(first)<th>error max / "
      "rms<th>error to f64 (ORT)<th>peak; private MB (ORT)</tr>\n{}</table>\n",
      escaped(machine_of(rows)), escaped(peer_version(rows)), means, ratio_chart(rows), table);
}

std::string docs_page(const json& rows, const std::string& note, const std::string& chart) {
  std::string page = fmt::format(
      "---\ntitle: Benchmarks, {0}\ndescription: Hologram beside ONNX Runtime, measured.\n---\n\n"
      "{{/* Written by `./dev bench models`; changes by hand are lost. */}}\n\n"
      "# Benchmarks, {0}\n\n",
      machine_of(rows));
  page += fmt::format(
      "Hologram and ONNX Runtime {} on {}: the same models and inputs, in one process, "
      "alternately. "
      "The ratio is Hologram's median time divided by ONNX Runtime's, with the middle 80% of the "
      "runs in brackets; below 1 Hologram is faster. Errors are the largest difference from ONNX "
      "Runtime, and of both from a run in f64 where the model is small, of the output's range; "
      "models that end in a close decision enlarge every rounding, ONNX Runtime's as well. Opening "
      "is the median of several, with the first of the process in brackets. Memory is "
      "the peak of a process that reads the model from a file that is not in the system's memory "
      "yet and runs it three times, then what of it is private: not the pages of files, which "
      "processes that run the same model have together.{}{}\n\n",
      peer_version(rows), machine_of(rows), note.empty() ? "" : " ", note);
  page += fmt::format("![The ratio of each model]({})\n\n", chart);
  page += targets_chapter(rows) + "\n## Rows\n\n";
  page +=
      "| model | precision | threads | Hologram ms | ORT ms | ratio | open ms (first) / ORT | "
      "error | "
      "error to f64 (ORT's) | peak; private MB (ORT) "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const json& row : rows) {
    if (row.contains("error")) {
      page += fmt::format("| {} | {} | {} | {} |\n", text(row, "model"), text(row, "precision"),
                          row.value("threads", 0), text(row, "error"));
      continue;
    }
    page += fmt::format(
        "| {} | {} | {} | {:.3f} | {:.3f} | {:.2f} ({:.2f}..{:.2f}) | {} / {} | {:.1e} | "
        "{} | {} |\n",
        text(row, "model"), text(row, "precision"), row.value("threads", 0),
        number(row, "hologram_ms"), number(row, "ort_ms"), number(row, "ratio"),
        number(row, "ratio_low"), number(row, "ratio_high"), opening(row, "hologram"),
        opening(row, "ort"), number(row, "max_error"), errors_to_f64(row), memory(row));
  }
  return page;
}

}  // namespace hologram::compare
