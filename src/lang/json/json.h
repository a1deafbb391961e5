// The JSON form of the IR. One document is one kernel; the schema is docs/json-ir.schema.json.
#pragma once

#include <string>
#include <string_view>

#include "lang/ir.h"
#include "support/result.h"

namespace hologram::lang {

// Two spaces a level; reading it back gives an equal kernel. The kernel must be valid.
std::string write_json(const ir::Kernel& kernel);

// parse_error for what is not JSON or not in the schema (unknown fields too: nothing is dropped
// silently), naming the place; then everything validate() says.
Result<ir::Kernel> read_json(std::string_view text);

}  // namespace hologram::lang
