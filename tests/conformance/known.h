// Known: the list of cases that do not pass yet, so that a test notices every change.
//
// One line a case, sorted: "refused node/test_x". Written by --write-known, never by hand. A case
// that stops passing is an error; so is one that passes but is still listed.
#pragma once

#include <filesystem>
#include <vector>

#include "report.h"

namespace hologram::conformance {

// Prints every difference between what the file lists and what was found; true when there is none.
bool check_known(const std::vector<Entry>& entries, const std::filesystem::path& file);
bool write_known(const std::vector<Entry>& entries, const std::filesystem::path& file);

}  // namespace hologram::conformance
