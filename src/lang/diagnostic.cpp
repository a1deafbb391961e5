#include "lang/diagnostic.h"

#include <algorithm>

namespace hologram::lang {
namespace {

std::string_view line_of(std::string_view source, uint32_t line) {
  size_t begin = 0;
  for (uint32_t i = 1; i < line; ++i) {
    const size_t end = source.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  std::string_view text = source.substr(begin, source.find('\n', begin) - begin);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

void Diagnostics::add(Position at, std::string message, std::string hint) {
  for (const Diagnostic& d : list_)
    if (d.at == at) return;
  list_.push_back({at, std::move(message), std::move(hint)});
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> list = list_;
  std::ranges::stable_sort(list, {}, &Diagnostic::at);
  return list;
}

std::string Diagnostics::render() const {
  std::string out;
  for (const Diagnostic& d : sorted()) {
    const std::string_view line = line_of(source_, d.at.line);
    out += fmt::format("{}:{}:{}: error: {}\n    {}\n    ", file_, d.at.line, d.at.column,
                       d.message, line);
    // Tabs stay tabs so that the caret stands under its column whatever a tab's width.
    for (uint32_t i = 0; i + 1 < d.at.column; ++i)
      out += i < line.size() && line[i] == '\t' ? '\t' : ' ';
    out += "^\n";
    if (!d.hint.empty()) out += fmt::format("  hint: {}\n", d.hint);
  }
  return out;
}

Error Diagnostics::error() const {
  std::string text = render();
  if (text.ends_with('\n')) text.pop_back();
  return Error(ErrorCode::parse_error, std::move(text));
}

}  // namespace hologram::lang
