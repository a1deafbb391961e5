#include "bench/compare/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <vector>

namespace hologram::compare {
namespace {

using nlohmann::json;
using Rows = std::vector<const json*>;

struct Target {
  const char* precision;
  double mean_ratio;  // geometric, at most
  double error;       // of the output's range, at most
};
constexpr Target kTargets[] = {{"f32", 0.80, 1e-5}, {"fast", 0.45, 1e-4}, {"bf16", 0.30, 2e-2}};
constexpr double kWorstRatio = 1.05, kIntegerRatio = 0.7, kOpening = 0.01, kMemory = 0.6;

double number(const json& row, const char* name) { return row.value(name, 0.0); }
double ratio(const json& row) { return number(row, "ratio"); }
double opening(const json& row) {
  return number(row, "hologram_open_ms") / number(row, "ort_open_ms");
}
double memory(const json& row) {
  return number(row, "hologram_peak_mb") / number(row, "ort_peak_mb");
}

// The distance to ONNX Runtime, or to f64 where that is known and smaller: the peer rounds as well.
double error(const json& row) {
  const double to_peer = number(row, "max_error");
  return row.contains("max_error_f64") ? std::min(to_peer, number(row, "max_error_f64")) : to_peer;
}

// A model that comes with 8-bit products, as its steps tell.
bool is_integer(const json& row) {
  if (!row.contains("steps")) return false;
  return std::any_of(row["steps"].begin(), row["steps"].end(), [](const json& step) {
    return step[1].get<std::string>().find("Integer") != std::string::npos;
  });
}

std::string name_of(const json& row) {
  return fmt::format("{} x{}", row.value("model", ""), row.value("threads", 0));
}

double geometric_mean(const Rows& rows) {
  double sum = 0;
  for (const json* row : rows) sum += std::log(ratio(*row));
  return std::exp(sum / static_cast<double>(rows.size()));
}

// "56 of 58 rows; not alexa x1 (1.10), alexa x2 (1.07)", or of all "58 of 58 rows, the worst alexa
// x1 (0.97)", with what `show` says of those named.
std::string count(const Rows& rows, auto value, double most, auto show) {
  std::string missed;
  size_t met = 0;
  const json* worst = rows[0];
  for (const json* row : rows) {
    if (value(*row) > value(*worst)) worst = row;
    if (value(*row) <= most)
      ++met;
    else
      missed += fmt::format("{}{} ({})", missed.empty() ? "" : ", ", name_of(*row), show(*row));
  }
  return fmt::format("{} of {} rows{}", met, rows.size(),
                     missed.empty()
                         ? fmt::format(", the worst {} ({})", name_of(*worst), show(*worst))
                         : "; not " + missed);
}

std::string line(const std::string& target, const std::string& asked, const std::string& measured) {
  return fmt::format("| {} | {} | {} |\n", target, asked, measured);
}

std::string lines_of(const Target& target, const Rows& rows) {
  const auto two_digits = [](auto value) {
    return [value](const json& row) { return fmt::format("{:.2f}", value(row)); };
  };
  const std::string precision = fmt::format("`{}`: ", target.precision);
  std::string result =
      line(precision + "geometric mean of the ratios", fmt::format("{:.2f}", target.mean_ratio),
           fmt::format("{:.3f}", geometric_mean(rows)));
  result += line(precision + "ratio of each", fmt::format("{:.2f}", kWorstRatio),
                 count(rows, ratio, kWorstRatio, two_digits(ratio)));
  Rows integers;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(integers),
               [](const json* row) { return is_integer(*row); });
  if (!integers.empty())
    result +=
        line(precision + "ratio of each model of integers", fmt::format("{:.2f}", kIntegerRatio),
             count(integers, ratio, kIntegerRatio, two_digits(ratio)));
  result += line(
      precision + "error, from ONNX Runtime or f64, the lesser",
      fmt::format("{:.0e}", target.error), count(rows, error, target.error, [](const json& row) {
        if (!row.contains("max_error_f64")) return fmt::format("{:.1e}", error(row));
        return fmt::format("{:.1e}; from f64 {:.1e}, ONNX Runtime {:.1e}", number(row, "max_error"),
                           number(row, "max_error_f64"), number(row, "ort_max_error_f64"));
      }));
  result += line(precision + "opening, of ONNX Runtime's", "1/100",
                 count(rows, opening, kOpening,
                       [](const json& row) { return fmt::format("1/{:.0f}", 1 / opening(row)); }));
  // The archive is what must be read of weights at the least, by either side.
  result += line(precision + "peak memory, of ONNX Runtime's", fmt::format("{:.1f}", kMemory),
                 count(rows, memory, kMemory, [](const json& row) {
                   return fmt::format("{:.2f}, weights {:.2f}", memory(row),
                                      number(row, "archive_mb") / number(row, "ort_peak_mb"));
                 }));
  return result;
}

// The kernels that take most of a run, largest first.
std::string kernels_of(const json& row) {
  std::map<std::string, double> times;
  double sum = 0;
  for (const json& step : row["steps"]) {
    times[step[1].get<std::string>()] += step[2].get<double>();
    sum += step[2].get<double>();
  }
  std::vector<std::pair<std::string, double>> sorted(times.begin(), times.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > 5) sorted.resize(5);
  std::string result;
  for (const auto& [kernel, time] : sorted)
    result += fmt::format("{}{} {:.0f}%", result.empty() ? "" : ", ", kernel, 100 * time / sum);
  return result;
}

}  // namespace

std::string targets_chapter(const json& rows) {
  std::string table, profiles;
  for (const Target& target : kTargets) {
    Rows chosen;
    for (const json& row : rows)
      if (!row.contains("error") && row.value("precision", "") == target.precision)
        chosen.push_back(&row);
    if (chosen.empty()) continue;
    table += lines_of(target, chosen);
    const bool too_slow = geometric_mean(chosen) > target.mean_ratio;
    for (const json* row : chosen)
      if (row->contains("steps") &&
          (ratio(*row) > kWorstRatio || (too_slow && ratio(*row) > target.mean_ratio)))
        profiles += fmt::format("| {} | {} | {:.2f} | {} |\n", name_of(*row), target.precision,
                                ratio(*row), kernels_of(*row));
  }
  if (table.empty()) return "";
  std::string chapter = "## Targets\n\n| target | at most | measured |\n|---|---|---|\n" + table;
  if (!profiles.empty())
    chapter +=
        "\nWhere the time of rows goes that are too slow:\n\n| model | precision | ratio | kernels "
        "|\n|---|---|---|---|\n" +
        profiles;
  return chapter;
}

}  // namespace hologram::compare
