// docs/conformance.md, from the lists of what does not pass and the operator table.
#pragma once

#include <string>

#include "known.h"

namespace hologram::conformance {

// "domain operator input types", one line an input or output.
std::string operator_list();

std::string conformance_page(const std::vector<Known>& suites);

}  // namespace hologram::conformance
