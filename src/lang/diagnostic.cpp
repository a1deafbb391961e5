#include "lang/diagnostic.h"

#include <algorithm>

namespace hologram::lang {
namespace {

std::vector<std::string_view> lines_of(std::string_view source) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    std::string_view text = source.substr(begin, end - begin);
    if (text.ends_with('\r')) text.remove_suffix(1);
    lines.push_back(text);
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void Diagnostics::add(Position at, std::string message, std::string hint) {
  if (places_.insert(at).second) list_.push_back({at, std::move(message), std::move(hint)});
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> list = list_;
  std::ranges::sort(list, {}, &Diagnostic::at);  // no two at one place
  return list;
}

std::string Diagnostics::render() const {
  const std::vector<std::string_view> lines = lines_of(source_);
  std::string out;
  for (const Diagnostic& d : sorted()) {
    const std::string_view line = d.at.line <= lines.size() ? lines[d.at.line - 1] : "";
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
