#include "known.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "support/file.h"

namespace hologram::conformance {
namespace {

// "refused node/test_x" for every case that did not pass.
std::set<std::string> not_passed(const std::vector<Entry>& entries) {
  std::set<std::string> lines;
  for (const Entry& entry : entries) {
    if (entry.result.outcome == Outcome::passed) continue;
    const char* outcome = entry.result.outcome == Outcome::refused ? "refused" : "failed";
    lines.insert(fmt::format("{} {}/{}", outcome, entry.folder.parent_path().filename().string(),
                             entry.folder.filename().string()));
  }
  return lines;
}

}  // namespace

bool check_known(const std::vector<Entry>& entries, const std::filesystem::path& file) {
  const auto text = read_text_file(file);
  if (!text) {
    fmt::print(stderr, "{}\n", text.error().to_string());
    return false;
  }
  std::set<std::string> known;
  for (size_t start = 0; start < text->size();) {
    const size_t end = std::min(text->find('\n', start), text->size());
    if (end > start) known.insert(text->substr(start, end - start));
    start = end + 1;
  }
  const std::set<std::string> found = not_passed(entries);
  bool same = true;
  for (const std::string& line : found)
    if (!known.contains(line)) same = false, fmt::print("new: {}\n", line);
  for (const std::string& line : known)
    if (!found.contains(line))
      same = false,
      fmt::print("no longer so (take it off the list with --write-known): {}\n", line);
  return same;
}

bool write_known(const std::vector<Entry>& entries, const std::filesystem::path& file) {
  std::string text;
  for (const std::string& line : not_passed(entries)) text += line + "\n";
  const Status status = write_file(file, std::string_view(text));
  if (!status) fmt::print(stderr, "{}\n", status.error().to_string());
  return status.has_value();
}

}  // namespace hologram::conformance
