#include "known.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "support/file.h"

namespace hologram::conformance {
namespace {

constexpr std::string_view kUnexplained = "not looked into yet";

std::string folder_of(const Entry& entry) { return entry.folder.parent_path().filename().string(); }

// "refused node/test_x" for every case that did not pass.
std::vector<std::string> not_passed(const std::vector<Entry>& entries) {
  std::set<std::string> lines;
  for (const Entry& entry : entries) {
    if (entry.result.outcome == Outcome::passed) continue;
    const char* outcome = entry.result.outcome == Outcome::refused ? "refused" : "failed";
    lines.insert(fmt::format("{} {}/{}", outcome, folder_of(entry), entry.result.name));
  }
  return {lines.begin(), lines.end()};
}

// "1878 of 1884 node", in the order of the folders.
std::vector<std::string> totals_of(const std::vector<Entry>& entries) {
  std::vector<std::string> folders, lines;
  for (const Entry& entry : entries)
    if (std::ranges::find(folders, folder_of(entry)) == folders.end())
      folders.push_back(folder_of(entry));
  for (const std::string& folder : folders) {
    size_t all = 0, passed = 0;
    for (const Entry& entry : entries) {
      if (folder_of(entry) != folder) continue;
      ++all;
      passed += entry.result.outcome == Outcome::passed;
    }
    lines.push_back(fmt::format("{} of {} {}", passed, all, folder));
  }
  return lines;
}

bool print_error(const Error& error) {
  fmt::print(stderr, "{}\n", error.to_string());
  return false;
}

}  // namespace

Result<Known> read_known(const std::filesystem::path& file) {
  HOLOGRAM_TRY(const std::string text, read_text_file(file));
  Known known;
  std::string reason(kUnexplained);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = std::string_view(text).substr(start, end - start);
    start = end + 1;
    auto after = [&](std::string_view mark) { return std::string(line.substr(mark.size())); };
    if (line.starts_with("# ")) {
      known.suite = after("# ");
    } else if (line.starts_with("passed ")) {
      known.totals.push_back(after("passed "));
    } else if (line.starts_with("reason: ")) {
      reason = after("reason: ");
    } else if (line.starts_with("failed ") || line.starts_with("refused ")) {
      known.order.emplace_back(line);
      known.reasons[std::string(line)] = reason;
    } else if (!line.empty()) {
      return fail(ErrorCode::corrupt, "{}: '{}' is none of #, passed, reason:, failed, refused",
                  file.string(), line);
    }
  }
  return known;
}

bool check_known(const std::vector<Entry>& entries, const std::filesystem::path& file) {
  const auto known = read_known(file);
  if (!known) return print_error(known.error());
  const std::vector<std::string> found = not_passed(entries), totals = totals_of(entries);
  bool same = true;
  for (const std::string& line : found)
    if (!known->reasons.contains(line)) same = false, fmt::print("new: {}\n", line);
  for (const std::string& line : known->order)
    if (std::ranges::find(found, line) == found.end())
      same = false,
      fmt::print("no longer so (take it off the list with --write-known): {}\n", line);
  if (totals != known->totals)
    for (const std::string& line : totals) same = false, fmt::print("now: passed {}\n", line);
  return same;
}

bool write_known(const std::vector<Entry>& entries, const std::filesystem::path& file) {
  Known known;
  if (auto before = read_known(file)) known = *std::move(before);
  const std::vector<std::string> found = not_passed(entries);
  std::string text = fmt::format("# {}\n", known.suite.empty() ? "a suite" : known.suite);
  for (const std::string& line : totals_of(entries)) text += "passed " + line + "\n";
  // In the order of the list, then what is new.
  std::vector<std::string> order = known.order;
  for (const std::string& line : found)
    if (!known.reasons.contains(line)) order.push_back(line);
  std::string reason;
  for (const std::string& line : order) {
    if (std::ranges::find(found, line) == found.end()) continue;
    const auto given = known.reasons.find(line);
    const std::string own(given == known.reasons.end() ? kUnexplained : given->second);
    if (own != reason) text += "reason: " + own + "\n";
    reason = own;
    text += line + "\n";
  }
  const Status status = write_file(file, std::string_view(text));
  return status ? true : print_error(status.error());
}

}  // namespace hologram::conformance
