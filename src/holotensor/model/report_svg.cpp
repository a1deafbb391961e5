#include <algorithm>
#include <cmath>
#include <optional>

#include "holotensor/model/quality_report.h"

namespace hologram::holotensor {
namespace {

struct Point {
  double bits, decibels;
  bool exact;
};

constexpr double kWidth = 900, kHeight = 560;
constexpr double kLeft = 72, kRight = 36, kTop = 112, kBottom = 104;
constexpr double kExact = kTop - 26;  // exact has no decibels: a line of its own above the rest

// From the data to the page.
struct Axes {
  double most_bits, most_decibels;

  double x(double bits) const {
    return kLeft + (kWidth - kLeft - kRight) * std::clamp(bits / most_bits, 0.0, 1.0);
  }
  double y(double decibels) const {
    return kHeight - kBottom -
           (kHeight - kTop - kBottom) * std::clamp(decibels / most_decibels, 0.0, 1.0);
  }
};

double nice_step(double range, int most_steps) {
  const double rough = range / most_steps;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::vector<Point> points_of(const TensorInfo& info) {
  std::vector<Point> points;
  const double weights = static_cast<double>(std::max<uint64_t>(1, info.elements()));
  uint64_t bytes = 0;
  for (size_t k = 1; k < info.curve.size(); ++k) {
    bytes += info.fragments[k - 1].size;
    const Quality& quality = info.curve[k];
    points.push_back({8.0 * static_cast<double>(bytes) / weights, quality.snr_db(),
                      quality.exact || !(quality.nmse > 0)});
  }
  return points;
}

std::vector<Point> points_of(const QualityReport& report) {
  std::vector<Point> points;
  for (const ModelPoint& point : report.prefixes) {
    const bool exact = point.exact_weights >= 1 - 1e-12 || !(point.nmse > 0);
    points.push_back({point.bits_a_weight, exact ? 0 : -10 * std::log10(point.nmse), exact});
  }
  return points;
}

std::string polyline(const Axes& axes, std::span<const Point> points, std::string_view style) {
  std::string path;
  for (const Point& point : points) {
    path += fmt::format("{:.1f},{:.1f} ", axes.x(point.bits),
                        point.exact ? kExact : axes.y(point.decibels));
  }
  return fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, path);
}

// A dot each 5% of the file, and words at each quarter.
std::string markers(const Axes& axes, std::span<const Point> points) {
  std::string out;
  bool was_exact = false;
  for (size_t k = 0; k < points.size(); ++k) {
    const Point& point = points[k];
    if (point.exact && was_exact) continue;  // the first is what counts
    was_exact = point.exact;
    const size_t percent = 5 * (20 - points.size() + k + 1);
    const double x = axes.x(point.bits), y = point.exact ? kExact : axes.y(point.decibels);
    const std::string quality = point.exact ? "exact" : fmt::format("{:.1f} dB", point.decibels);
    const std::string what =
        fmt::format("{}% of the file: {:.2f} bits a weight, {}", percent, point.bits, quality);
    if (point.exact) {
      out += fmt::format(
          "<path d=\"M{:.1f},{:.1f} l7,7 l-7,7 l-7,-7 z\" class=\"e\"><title>{}</title></path>\n",
          x, y - 7, what);
      continue;
    }
    const bool quarter = percent % 25 == 0;
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\"><title>{}</title></circle>\n", x,
        y, quarter ? 5 : 3, quarter ? "q" : "d", what);
    if (quarter)
      out += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"l\"><tspan font-weight=\"600\">{}%</tspan> of "
          "the "
          "file, {}</text>\n",
          x + 10, y + 17, percent, quality);
  }
  return out;
}

std::string grid(const Axes& axes) {
  std::string out;
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  const double bits_step = nice_step(axes.most_bits, 10);
  for (double bits = 0; bits <= axes.most_bits + 1e-9; bits += bits_step) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" class=\"g\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        axes.x(bits), kTop, bottom, bottom + 18, bits);
  }
  const double decibel_step = nice_step(axes.most_decibels, 8);
  for (double level = 0; level <= axes.most_decibels + 1e-9; level += decibel_step) {
    out += fmt::format(
        "<line x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\" class=\"g\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        axes.y(level), kLeft, right, kLeft - 8, axes.y(level) + 4, level);
  }
  out += fmt::format(
      "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" class=\"x\"/>"
      "<text x=\"{3}\" y=\"{4}\" text-anchor=\"end\" class=\"r\">exact</text>\n",
      kLeft, kExact, right, kLeft - 8, kExact + 4);
  out += fmt::format(
      "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" class=\"a\">bits a weight, every byte "
      "counted</text>\n",
      (kLeft + right) / 2, bottom + 42);
  out += fmt::format(
      "<text transform=\"translate(22,{:.1f}) rotate(-90)\" text-anchor=\"middle\" class=\"a\">"
      "signal to noise, dB</text>\n",
      (kTop + bottom) / 2);
  return out;
}

std::string legend(size_t lines, size_t tensors) {
  const double y = kHeight - 24;
  std::string out;
  double x = kLeft;
  const auto entry = [&](const std::string& sign, std::string_view text, double width) {
    out += fmt::format(
        "<g transform=\"translate({:.0f},{:.0f})\">{}<text x=\"38\" y=\"4\">{}</text></g>\n", x, y,
        sign, text);
    x += width;
  };
  entry("<line x2=\"30\" class=\"m\"/><circle cx=\"15\" r=\"5\" class=\"q\"/>",
        "whole model, from a prefix of the file", 268);
  entry("<line x2=\"30\" class=\"t\" stroke-opacity=\"1\"/>",
        lines == tensors ? fmt::format("its {} tensors", tensors)
                         : fmt::format("its {} largest tensors", lines),
        182);
  entry("<line x2=\"30\" class=\"b\"/>", "Gaussian bound, 6.02 dB a bit", 222);
  entry("<path d=\"M15,-7 l7,7 l-7,7 l-7,-7 z\" class=\"e\"/>", "every bit", 80);
  return out;
}

}  // namespace

std::string report_svg(const QualityReport& report, std::string_view title) {
  constexpr size_t kMostLines = 150;
  // The largest tensors decide what a model weighs; small ones have headers larger than weights.
  std::vector<const TensorInfo*> shown;
  for (const TensorInfo& info : report.tensors) shown.push_back(&info);
  std::ranges::stable_sort(shown, std::greater<>(), &TensorInfo::elements);
  shown.resize(std::min(shown.size(), kMostLines));

  const auto model = points_of(report);
  Axes axes{.most_bits = 4, .most_decibels = 24};
  for (const Point& point : model) {
    axes.most_bits = std::max(axes.most_bits, point.bits * 1.05);
    if (!point.exact) axes.most_decibels = std::max(axes.most_decibels, point.decibels * 1.15);
  }
  // One tensor that is far better than the model must not flatten everything else.
  double most_of_tensors = 0;
  for (const TensorInfo* info : shown) {
    for (const Point& point : points_of(*info)) {
      if (point.bits <= axes.most_bits && !point.exact) {
        most_of_tensors = std::max(most_of_tensors, point.decibels * 1.15);
      }
    }
  }
  axes.most_decibels =
      std::max(axes.most_decibels, std::min(most_of_tensors, 1.5 * axes.most_decibels));
  const double bound_bits = std::min(axes.most_bits, axes.most_decibels / 6.0206);
  const Point bound[] = {{0, 0, false}, {bound_bits, 6.0206 * bound_bits, false}};

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"Inter,'Helvetica Neue',Helvetica,Arial,sans-serif\" "
      "font-size=\"12\" fill=\"#3b4252\">\n"
      "<style>.g{{stroke:#e8ebf0;stroke-width:1}}.x{{stroke:#d3a4a0;stroke-width:1;"
      "stroke-dasharray:2 4}}.t{{stroke:#8a94a6;stroke-opacity:.28;stroke-width:1}}"
      ".b{{stroke:#2f855a;stroke-width:1.5;stroke-dasharray:7 5;fill:none}}"
      ".m{{stroke:#2563c9;stroke-width:3;stroke-linejoin:round;stroke-linecap:round;fill:none}}"
      ".d{{fill:#2563c9}}.q{{fill:#fff;stroke:#2563c9;stroke-width:2.5}}.e{{fill:#c2352b}}"
      ".l{{fill:#1d3f7a;paint-order:stroke;stroke:#fff;stroke-width:4;stroke-linejoin:round}}"
      ".a{{font-size:13px;fill:#5a6475}}.r{{fill:#c2352b;font-weight:600}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"36\" font-size=\"20\" font-weight=\"700\" fill=\"#1b2333\">{3}</text>\n"
      "<text x=\"{2}\" y=\"58\" font-size=\"13\" fill=\"#5a6475\">{4} tensor{7}, {5:.3g} million "
      "weights; every bit of them in {6:.2f} bits a weight, {8:.0f}% of the source</text>\n",
      kWidth, kHeight, kLeft, escaped(title), report.tensors.size(),
      static_cast<double>(report.weights) / 1e6,
      8.0 * static_cast<double>(report.file_bytes) /
          static_cast<double>(std::max<uint64_t>(1, report.weights)),
      report.tensors.size() == 1 ? "" : "s",
      100.0 * static_cast<double>(report.file_bytes) /
          static_cast<double>(std::max<uint64_t>(1, report.source_bytes)));
  svg += grid(axes);
  for (const TensorInfo* info : shown) {
    const auto points = points_of(*info);
    std::vector<Point> inside;
    std::ranges::copy_if(points, std::back_inserter(inside),
                         [&](const Point& point) { return point.bits <= axes.most_bits; });
    svg += polyline(axes, inside, "class=\"t\"");
  }
  svg += polyline(axes, bound, "class=\"b\"");
  svg += polyline(axes, model, "class=\"m\"");
  svg += markers(axes, model);
  svg += legend(shown.size(), report.tensors.size());
  return svg + "</svg>\n";
}

}  // namespace hologram::holotensor
