// Qualities as they are written on the command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "holotensor/quality.h"
#include "support/result.h"

namespace hologram::cli {

// What a tensor is to take or to reach: "4bits", "30dB", "nmse=1e-3" or "exact".
struct QualityWish {
  std::optional<double> bits;
  std::optional<holotensor::QualityTarget> target;
};
Result<QualityWish> parse_quality(std::string_view text);

// "attention.*=30dB": a pattern of names and what they get.
struct QualityWishRule {
  std::string pattern;
  QualityWish wish;
};
Result<QualityWishRule> parse_quality_rule(std::string_view text);

}  // namespace hologram::cli
