#include "holotensor/model/quality_report.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "holotensor/reader.h"
#include "support/shape.h"

namespace hologram::holotensor {
namespace {

uint64_t bytes_of(const TensorInfo& info, size_t fragments) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < std::min<size_t>(fragments, info.fragment_count); ++i) {
    bytes += info.fragments[i].size;
  }
  return bytes;
}

std::string decibels(const Quality& quality) {
  if (quality.exact) return "exact";
  if (quality.nmse <= 0) return "inf";
  return fmt::format("{:.1f}", quality.snr_db() + 0.0);
}

double percent(uint64_t part, uint64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string shortened(const std::string& text, size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width / 2 - 1) + ".." + text.substr(text.size() - (width - width / 2 - 1));
}

}  // namespace

QualityReport quality_report(std::vector<TensorInfo> tensors, uint64_t file_bytes,
                             uint64_t overhead) {
  QualityReport report{.file_bytes = file_bytes, .overhead = overhead};
  size_t most = 0;
  for (const TensorInfo& info : tensors) {
    report.weights += info.elements();
    report.source_bytes += info.source_bytes();
    most = std::max<size_t>(most, info.fragment_count);
  }
  const double weights = static_cast<double>(std::max<uint64_t>(1, report.weights));
  // The model from `count(info)` fragments of each tensor.
  const auto point_of = [&](auto count) {
    ModelPoint point{.bytes = overhead, .nmse = 0, .worst_nmse = 0};
    std::unordered_set<uint64_t> counted;  // equal tensors share their fragments
    for (const TensorInfo& info : tensors) {
      const size_t fragments = std::min<size_t>(count(info), info.fragment_count);
      const Quality& quality = info.curve[fragments];
      const double share = static_cast<double>(info.elements()) / weights;
      const double nmse = quality.exact ? 0 : quality.nmse;
      point.fragments = std::max(point.fragments, fragments);
      if (counted.insert(info.id).second) point.bytes += bytes_of(info, fragments);
      point.nmse += share * nmse;
      if (quality.exact) point.exact_weights += share;
      if (nmse > point.worst_nmse) {
        point.worst_nmse = nmse;
        point.worst_tensor = info.name;
      }
    }
    point.bits_a_weight = 8.0 * static_cast<double>(point.bytes) / weights;
    return point;
  };
  for (size_t k = 0; k <= most; ++k)
    report.points.push_back(point_of([&](const TensorInfo&) { return k; }));
  for (int twentieths = 1; twentieths <= 20; ++twentieths) {
    const uint64_t limit = file_bytes / 20 * twentieths + file_bytes % 20 * twentieths / 20;
    bool complete = true;  // every tensor is there at some quality
    const auto inside = [&](const TensorInfo& info) {
      const auto in_prefix = [&](const FragmentEntry& f) { return f.offset + f.size <= limit; };
      const auto end = std::ranges::find_if_not(info.fragments, in_prefix);
      const auto count = static_cast<size_t>(end - info.fragments.begin());
      complete = complete && count >= info.min_fragments;
      return count;
    };
    ModelPoint point = point_of(inside);
    if (complete) report.prefixes.push_back(std::move(point));
  }
  report.tensors = std::move(tensors);
  return report;
}

Result<QualityReport> quality_report(const std::filesystem::path& path) {
  HOLOGRAM_TRY(const auto reader, Reader::open(path));
  return quality_report(reader.tensors(), reader.file_size(), reader.overhead());
}

std::string report_table(const QualityReport& report) {
  const double weights = static_cast<double>(std::max<uint64_t>(1, report.weights));
  std::string text = fmt::format(
      "{} tensors, {} weights; file {} ({:.2f} bits a weight), {:.1f}% of the source's {}\n"
      "header and directory: {}\n\n",
      report.tensors.size(), report.weights, bytes_text(report.file_bytes),
      8.0 * static_cast<double>(report.file_bytes) / weights,
      percent(report.file_bytes, report.source_bytes), bytes_text(report.source_bytes),
      bytes_text(report.overhead));
  const auto line = [&](std::string_view first, const ModelPoint& point) {
    const bool exact = point.exact_weights >= 1 - 1e-12;
    const auto snr = [&](double nmse) { return decibels({.nmse = nmse, .exact = exact}); };
    return fmt::format("{:>12} {:>11} {:>6.1f}% {:>12.3f} {:>9} {:>9} {:>6.1f}%  {}\n", first,
                       bytes_text(point.bytes), percent(point.bytes, report.file_bytes),
                       point.bits_a_weight, snr(point.nmse), snr(point.worst_nmse),
                       100 * point.exact_weights, exact ? "" : shortened(point.worst_tensor, 40));
  };
  text += fmt::format("{:>12} {:>11} {:>7} {:>12} {:>9} {:>9} {:>7}  {}\n", "the first", "bytes",
                      "% file", "bits/weight", "mean dB", "worst dB", "exact", "worst tensor");
  for (const ModelPoint& point : report.prefixes) {
    const size_t place =
        20 - report.prefixes.size() + static_cast<size_t>(&point - report.prefixes.data()) + 1;
    if (place % 2 == 0 || place == 5 || place == 15)
      text += line(fmt::format("{}%", place * 5), point);
  }
  for (const ModelPoint& point : report.points)
    if (point.fragments > 0)
      text += line(fmt::format("{} fragment{}", point.fragments, point.fragments > 1 ? "s" : ""),
                   point);
  text += fmt::format("\n{:<44} {:<8} {:<20} {:<10} {:>11} {:>7} {:>6}  {}\n", "tensor", "type",
                      "shape", "scheme", "stored", "% src", "bits", "dB with 1, 2, ... fragments");
  for (const TensorInfo& info : report.tensors) {
    std::string curve;
    for (size_t k = 1; k < info.curve.size(); ++k) curve += decibels(info.curve[k]) + " ";
    const uint64_t elements = std::max<uint64_t>(1, info.elements());
    text += fmt::format(
        "{:<44} {:<8} {:<20} {:<10} {:>11} {:>6.1f}% {:>6.2f}  {}\n", shortened(info.name, 44),
        hologram::name_of(info.dtype), Shape(std::span<const int64_t>(info.shape)).to_string(),
        name_of(info.scheme), bytes_text(info.stored_bytes()),
        percent(info.stored_bytes(), info.source_bytes()),
        8.0 * static_cast<double>(info.stored_bytes()) / static_cast<double>(elements), curve);
  }
  return text;
}

}  // namespace hologram::holotensor
