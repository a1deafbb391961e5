#include "cli/inspect/page.h"

#include <fmt/format.h>

#include "cli/inspect/text.h"

namespace hologram::cli {

std::string inspection_page(const nlohmann::ordered_json& document) {
  constexpr std::string_view kMark = "@DATA@";
  const std::string_view page = page_template();
  const size_t mark = page.find(kMark);
  std::string json;
  // "</script>" inside a name must not end the element.
  for (const char c :
       document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<')
      json += "\\u003c";
    else
      json += c;
  }
  return fmt::format("{}{}{}", page.substr(0, mark), json, page.substr(mark + kMark.size()));
}

}  // namespace hologram::cli
