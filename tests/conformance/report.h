// What a run of suites found, for people and for programs.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "case.h"

namespace hologram::conformance {

struct Entry {
  std::filesystem::path folder;
  CaseResult result;
};

// "N passed, M failed, K refused", always the last line.
void print_summary(const std::vector<Entry>& entries);
// Equal reasons together, most frequent first, then the operators of the cases that do not pass.
void print_groups(const std::vector<Entry>& entries);
void print_failures(const std::vector<Entry>& entries);
bool write_json(const std::vector<Entry>& entries, const std::filesystem::path& file);

}  // namespace hologram::conformance
