// The ratios of a comparison as bars, those of a model together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hologram::compare {

// An SVG file, which may stand in a page as it is.
std::string ratio_chart(const nlohmann::json& rows);

}  // namespace hologram::compare
