// The rows of a comparison as a table, a page and a chapter of the documentation.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hologram::compare {

// The processor and how many cores it has.
std::string machine();

void print_header();
void print_row(const nlohmann::json& row);
// "f32: geometric mean of the ratios 0.8 over 32 rows", a line a precision.
std::string summary(const nlohmann::json& rows);

// One page with everything in it: the chart and a table.
std::string html_page(const nlohmann::json& rows);
// docs/benchmarks.mdx. The note says of the rows what they do not; the chart is a file beside it.
std::string docs_page(const nlohmann::json& rows, const std::string& note,
                      const std::string& chart);

}  // namespace hologram::compare
