// What an archive holds, as one JSON document: `hologram inspect --json` prints it, the text and
// the page of --html are views of it.
//
//   file, version, producer
//   sections   kind, offset, size
//   inputs, outputs   name, type
//   constants  type, offset, size
//   programs   bytes, text (the ISA's assembler)
//   plan       name, arena, values, inputs, outputs, steps; the plans inside a step in `subplans`
//
// `captures` of a step are what the plans inside it read from around them. Values and steps are
// numbered by their place in the plan; a left-out input is null.
#pragma once

#include <nlohmann/json.hpp>

#include "archive/archive.h"
#include "runtime/session/session.h"

namespace hologram::cli {

nlohmann::ordered_json describe(const archive::Archive& archive, const std::string& file);

// Adds `milliseconds` to the steps of the outermost plan.
void add_times(nlohmann::ordered_json& document, std::span<const runtime::StepTime> times);

}  // namespace hologram::cli
