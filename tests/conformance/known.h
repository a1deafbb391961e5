// A list of what is known not to pass, with reasons; kept with the project and checked by tests.
//
//   # ONNX 1.23                        the suite's name
//   passed 1878 of 1884 node           one line a folder
//   reason: Random. ...                of the cases that follow
//   failed node/test_bernoulli
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report.h"
#include "support/result.h"

namespace hologram::conformance {

struct Known {
  std::string suite;
  std::vector<std::string> totals;             // "1878 of 1884 node"
  std::map<std::string, std::string> reasons;  // "failed node/test_x" -> why
  std::vector<std::string> order;              // the keys of `reasons`, as listed
};

Result<Known> read_known(const std::filesystem::path& file);
// Whether the results are just those of the list; prints what differs.
bool check_known(const std::vector<Entry>& entries, const std::filesystem::path& file);
// Writes the list, keeping the suite's name and the reasons that the file has.
bool write_known(const std::vector<Entry>& entries, const std::filesystem::path& file);

}  // namespace hologram::conformance
