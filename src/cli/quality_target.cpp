#include "cli/quality_target.h"

#include <charconv>
#include <cmath>

namespace hologram::cli {
namespace {

// The whole text as a number.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> number_before(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  return number(text.substr(0, text.size() - unit.size()));
}

}  // namespace

Result<QualityWish> parse_quality(std::string_view text) {
  using holotensor::QualityTarget;
  if (text == "exact") return QualityWish{.target = QualityTarget::lossless()};
  for (const std::string_view unit : {"bits", "bit"}) {
    if (const auto bits = number_before(text, unit); bits && *bits > 0) {
      return QualityWish{.bits = *bits};
    }
  }
  for (const std::string_view unit : {"dB", "db"}) {
    if (const auto level = number_before(text, unit); level && *level >= 0) {
      return QualityWish{.target = QualityTarget::snr_db(*level)};
    }
  }
  if (text.starts_with("nmse=")) {
    if (const auto limit = number(text.substr(5)); limit && *limit >= 0) {
      return QualityWish{.target = QualityTarget::nmse(*limit)};
    }
  }
  return fail(ErrorCode::invalid_argument,
              "'{}' is no quality; write 4bits, 30dB, nmse=1e-3 or exact", text);
}

Result<QualityWishRule> parse_quality_rule(std::string_view text) {
  // The first '=': nmse= has one of its own.
  const size_t at = text.find('=');
  if (at == text.npos || at == 0) {
    return fail(ErrorCode::invalid_argument,
                "'{}' is no rule; write PATTERN=QUALITY, such as 'attention.*=30dB'", text);
  }
  HOLOGRAM_TRY(const auto wish, parse_quality(text.substr(at + 1)));
  return QualityWishRule{std::string(text.substr(0, at)), wish};
}

}  // namespace hologram::cli
