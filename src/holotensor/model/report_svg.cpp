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

constexpr double kWidth = 860, kHeight = 520;
constexpr double kLeft = 64, kRight = 24, kTop = 56, kBottom = 92;

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
  for (const ModelPoint& point : report.points) {
    if (point.fragments == 0) continue;
    const bool exact = point.exact_weights >= 1 - 1e-12 || !(point.nmse > 0);
    points.push_back({point.bits_a_weight, exact ? 0 : -10 * std::log10(point.nmse), exact});
  }
  return points;
}

// Exact points have no decibels: they sit at the top edge.
std::string polyline(const Axes& axes, std::span<const Point> points, std::string_view style) {
  std::string path;
  for (const Point& point : points) {
    path += fmt::format("{:.1f},{:.1f} ", axes.x(point.bits),
                        point.exact ? kTop : axes.y(point.decibels));
  }
  return fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, path);
}

std::string markers(const Axes& axes, std::span<const Point> points) {
  std::string out;
  for (size_t k = 0; k < points.size(); ++k) {
    const Point& point = points[k];
    const double x = axes.x(point.bits), y = point.exact ? kTop : axes.y(point.decibels);
    const std::string what =
        fmt::format("{} fragments: {:.2f} bits a weight, {}", k + 1, point.bits,
                    point.exact ? "exact" : fmt::format("{:.1f} dB", point.decibels));
    if (point.exact) {
      out += fmt::format(
          "<path d=\"M{:.1f},{:.1f} l6,6 l-6,6 l-6,-6 z\" "
          "fill=\"#b3261e\"><title>{}</title></path>\n",
          x, y - 6, what);
    } else {
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" "
          "fill=\"#1f5fbf\"><title>{}</title></circle>\n",
          x, y, what);
    }
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
      "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">bits a weight, every byte "
      "counted</text>\n",
      (kLeft + right) / 2, bottom + 38);
  out += fmt::format(
      "<text transform=\"translate(18,{:.1f}) rotate(-90)\" text-anchor=\"middle\">"
      "signal to noise, dB</text>\n",
      (kTop + bottom) / 2);
  return out;
}

std::string legend(size_t lines, size_t tensors) {
  const double y = kHeight - 22;
  return fmt::format(
      "<line x1=\"64\" y1=\"{0}\" x2=\"94\" y2=\"{0}\" stroke=\"#1f5fbf\" stroke-width=\"2.5\"/>"
      "<text x=\"100\" y=\"{1}\">whole model (mean over weights)</text>\n"
      "<line x1=\"318\" y1=\"{0}\" x2=\"348\" y2=\"{0}\" class=\"t\"/>"
      "<text x=\"354\" y=\"{1}\">{2}</text>\n"
      "<line x1=\"520\" y1=\"{0}\" x2=\"550\" y2=\"{0}\" class=\"b\"/>"
      "<text x=\"556\" y=\"{1}\">Gaussian bound</text>\n"
      "<path d=\"M682,{3} l6,6 l-6,6 l-6,-6 z\" fill=\"#b3261e\"/>"
      "<text x=\"696\" y=\"{1}\">exact</text>\n",
      y, y + 4,
      lines == tensors ? fmt::format("{} tensors", tensors)
                       : fmt::format("{} largest of {}", lines, tensors),
      y - 6);
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
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
      "<style>.g{{stroke:#ddd;stroke-width:1}}.t{{stroke:#888;stroke-opacity:.45;stroke-width:1}}"
      ".b{{stroke:#2e7d32;stroke-width:1.5;stroke-dasharray:6 4}}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<text x=\"{2}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{3}</text>\n"
      "<text x=\"{2}\" y=\"46\" fill=\"#555\">{4} tensors, {5:.3g} million weights, "
      "{6:.2f} bits a weight in all</text>\n",
      kWidth, kHeight, kLeft, escaped(title), report.tensors.size(),
      static_cast<double>(report.weights) / 1e6,
      8.0 * static_cast<double>(report.file_bytes) /
          static_cast<double>(std::max<uint64_t>(1, report.weights)));
  svg += grid(axes);
  for (const TensorInfo* info : shown) {
    const auto points = points_of(*info);
    std::vector<Point> inside;
    std::ranges::copy_if(points, std::back_inserter(inside),
                         [&](const Point& point) { return point.bits <= axes.most_bits; });
    svg += polyline(axes, inside, "class=\"t\"");
  }
  svg += polyline(axes, bound, "class=\"b\"");
  svg += polyline(axes, model, "stroke=\"#1f5fbf\" stroke-width=\"2.5\"");
  svg += markers(axes, model);
  svg += legend(shown.size(), report.tensors.size());
  return svg + "</svg>\n";
}

}  // namespace hologram::holotensor
