#include "bench/compare/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace hologram::compare {
namespace {

using nlohmann::json;

// Pixels.
constexpr double kLeft = 180, kWidth = 680, kTop = 64, kBar = 6, kGap = 10;
constexpr double kSmallestScale = 1.25, kTick = 0.25;  // ratios

struct Colour {
  const char* precision;
  const char* colour;
};
constexpr std::array<Colour, 4> kColours{
    {{"f32", "#3b6fb6"}, {"fast", "#d9822b"}, {"bf16", "#3a9150"}, {"int8", "#8b5fae"}}};

size_t place_of(const json& row) {
  const std::string precision = row.value("precision", "");
  const auto found =
      std::ranges::find_if(kColours, [&](const Colour& c) { return precision == c.precision; });
  return static_cast<size_t>(found - kColours.begin()) % kColours.size();
}

// Of one thread in full colour, of more in a lighter one.
std::string bar(double x, double y, double width, const char* colour, bool full) {
  return fmt::format(
      "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{}' fill='{}' fill-opacity='{}'>", x, y,
      width, kBar - 1, colour, full ? 1 : 0.5);
}

class Scale {
 public:
  explicit Scale(const std::vector<const json*>& rows) {
    for (const json* row : rows) most_ = std::max(most_, row->value("ratio", 0.0));
    most_ = std::ceil(most_ / kTick) * kTick;
  }
  double most() const { return most_; }
  // What lies beyond the picture ends at its edge.
  double x(double ratio) const { return kLeft + std::min(ratio, most_) / most_ * kWidth; }

 private:
  double most_ = kSmallestScale;
};

std::string axis(const Scale& scale, double bottom) {
  std::string result;
  for (double tick = 0; tick <= scale.most() + 1e-9; tick += kTick) {
    const double x = scale.x(tick);
    const bool equal = tick == 1;
    result += fmt::format(
        "<path d='M{:.1f} {}V{}' stroke='{}'{}/><text x='{:.1f}' y='{}' text-anchor='middle'>{}"
        "</text>\n",
        x, kTop, bottom, equal ? "#555" : "#ddd", equal ? " stroke-dasharray='4'" : "", x, kTop - 8,
        equal ? "1, ONNX Runtime" : fmt::format("{}", tick));
  }
  return result;
}

std::string legend(const std::vector<const json*>& rows) {
  std::string result;
  double x = kLeft;
  const auto entry = [&](const char* colour, bool full, const std::string& text) {
    result += bar(x, 17, 16, colour, full) +
              fmt::format("</rect><text x='{:.1f}' y='24'>{}</text>\n", x + 22, text);
    x += 44 + 7 * static_cast<double>(text.size());
  };
  for (size_t c = 0; c < kColours.size(); ++c)
    if (std::ranges::any_of(rows, [&](const json* row) { return place_of(*row) == c; }))
      entry(kColours[c].colour, true, kColours[c].precision);
  entry("#555", true, "one thread");
  entry("#555", false, "two");
  result += fmt::format("<text x='{:.1f}' y='24'>lines: the middle 80% of the runs</text>\n", x);
  return result;
}

}  // namespace

std::string ratio_chart(const json& rows) {
  std::vector<const json*> measured;
  std::vector<std::string> models;
  for (const json& row : rows) {
    if (row.contains("error")) continue;
    measured.push_back(&row);
    if (const std::string model = row.value("model", ""); !std::ranges::count(models, model))
      models.push_back(model);
  }
  const Scale scale(measured);
  const double bottom = kTop + kBar * static_cast<double>(measured.size()) +
                        kGap * static_cast<double>(models.size());
  std::string body = legend(measured) + axis(scale, bottom);
  double y = kTop + kGap / 2;
  for (const std::string& model : models) {
    const double first = y;
    for (const json* row : measured) {
      if (row->value("model", "") != model) continue;
      const Colour& of = kColours[place_of(*row)];
      const double ratio = row->value("ratio", 0.0), middle = y + (kBar - 1) / 2;
      const int threads = row->value("threads", 1);
      body += bar(kLeft, y, scale.x(ratio) - kLeft, of.colour, threads == 1) +
              fmt::format("<title>{} {} x{}: {:.3f}</title></rect>", model, of.precision, threads,
                          ratio) +
              fmt::format("<path d='M{:.1f} {}H{:.1f}' stroke='#333'/>\n",
                          scale.x(row->value("ratio_low", ratio)), middle,
                          scale.x(row->value("ratio_high", ratio)));
      y += kBar;
    }
    body += fmt::format("<text x='{}' y='{}' text-anchor='end'>{}</text>\n", kLeft - 10,
                        (first + y) / 2 + 4, model);
    y += kGap;
  }
  const double width = kLeft + kWidth + 40, height = bottom + 12;
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='system-ui, sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' "
      "fill='#fff'/>\n{2}</svg>\n",
      width, height, body);
}

}  // namespace hologram::compare
