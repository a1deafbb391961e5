// The document of describe.h for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hologram::cli {

// Sections, inputs and outputs, steps, the largest constants and the memory map.
std::string inspection_text(const nlohmann::ordered_json& document);

// The steps of the outermost plan for Graphviz.
std::string inspection_dot(const nlohmann::ordered_json& document);

// One page that needs nothing else: the graph, a timeline of the steps and the memory plan, drawn.
std::string inspection_page(const nlohmann::ordered_json& document);

// "1.5 MB"
std::string readable_size(uint64_t bytes);

}  // namespace hologram::cli
