#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace hologram::conformance {
namespace {

const char* name_of(Outcome outcome) {
  return outcome == Outcome::passed ? "passed" : outcome == Outcome::failed ? "failed" : "refused";
}

size_t count(const std::vector<Entry>& entries, Outcome outcome) {
  return std::ranges::count_if(entries,
                               [&](const Entry& e) { return e.result.outcome == outcome; });
}

// The reason without what differs from case to case: names in quotes and numbers.
std::string kind_of(const std::string& reason) {
  std::string kind;
  bool quoted = false;
  for (char c : reason) {
    if (c == '\'') quoted = !quoted;
    if (quoted && c != '\'') continue;
    if (std::isdigit(static_cast<unsigned char>(c))) {
      if (kind.empty() || kind.back() != '#') kind += '#';
    } else {
      kind += c;
    }
  }
  return kind;
}

void print_map(const std::map<std::string, std::vector<std::string>>& groups, size_t examples) {
  std::vector<const std::pair<const std::string, std::vector<std::string>>*> sorted;
  for (const auto& group : groups) sorted.push_back(&group);
  std::ranges::stable_sort(sorted, std::greater(), [](auto* g) { return g->second.size(); });
  for (const auto* group : sorted) {
    fmt::print("{:5}  {}", group->second.size(), group->first);
    for (size_t i = 0; i < std::min(examples, group->second.size()); ++i)
      fmt::print("{}{}", i ? ", " : "   e.g. ", group->second[i]);
    fmt::print("\n");
  }
}

}  // namespace

void print_summary(const std::vector<Entry>& entries) {
  fmt::print("{} passed, {} failed, {} refused\n", count(entries, Outcome::passed),
             count(entries, Outcome::failed), count(entries, Outcome::refused));
}

void print_groups(const std::vector<Entry>& entries) {
  for (Outcome outcome : {Outcome::failed, Outcome::refused}) {
    std::map<std::string, std::vector<std::string>> groups;
    for (const Entry& e : entries)
      if (e.result.outcome == outcome) groups[kind_of(e.result.reason)].push_back(e.result.name);
    if (groups.empty()) continue;
    fmt::print("{}, by reason:\n", name_of(outcome));
    print_map(groups, 2);
  }
}

void print_failures(const std::vector<Entry>& entries) {
  for (const Entry& e : entries)
    if (e.result.outcome != Outcome::passed)
      fmt::print("{:8} {}: {}\n", name_of(e.result.outcome), e.result.name, e.result.reason);
}

bool write_json(const std::vector<Entry>& entries, const std::filesystem::path& file) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Entry& e : entries)
    rows.push_back({{"suite", e.folder.parent_path().filename().string()},
                    {"name", e.result.name},
                    {"outcome", name_of(e.result.outcome)},
                    {"reason", e.result.reason},
                    {"operators", operators_of(e.folder)}});
  std::ofstream out(file);
  out << nlohmann::json{{"passed", count(entries, Outcome::passed)},
                        {"failed", count(entries, Outcome::failed)},
                        {"refused", count(entries, Outcome::refused)},
                        {"cases", rows}}
             .dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
      << "\n";
  return static_cast<bool>(out);
}

}  // namespace hologram::conformance
