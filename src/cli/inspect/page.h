// The page of `hologram inspect --html`, with @DATA@ where the document goes.
#pragma once

#include <string_view>

namespace hologram::cli {

std::string_view page_template();

}  // namespace hologram::cli
