// hologram-conformance: runs ONNX suites through the whole path and says what passes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "image/image.h"
#include "isolate.h"
#include "known.h"
#include "page.h"
#include "report.h"
#include "support/file.h"

namespace {

// The page from the lists, written or compared; the exit code.
int page(const std::vector<std::string>& lists, const std::string& file, bool write) {
  using namespace hologram;
  std::vector<conformance::Known> suites;
  for (const std::string& list : lists) {
    auto known = conformance::read_known(list);
    if (!known) {
      fmt::print(stderr, "{}\n", known.error().to_string());
      return 2;
    }
    suites.push_back(*std::move(known));
  }
  const std::string text = conformance::conformance_page(suites);
  if (!write) {
    const auto found = read_text_file(file);
    if (found && *found == text) return 0;
    fmt::print("{} is not what the lists and the operator table say: ./dev conformance\n", file);
    return 1;
  }
  const Status status = write_file(file, std::string_view(text));
  if (!status) fmt::print(stderr, "{}\n", status.error().to_string());
  return status ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hologram::conformance;
  hologram::image::register_decoder();
  CLI::App app("Runs ONNX conformance suites: compile each model, run it, compare the results.");
  app.footer(
      "Example: hologram-conformance /usr/share/libonnx-testdata/data/node --filter softmax "
      "--list-failures");
  std::vector<std::string> folders, lists;
  std::string write_page, check_page;
  std::string filter, json, known, write_known_to;
  bool operators = false, list = false, quiet = false, in_process = false;
  unsigned jobs = 2, seconds = 60;
  app.add_option("suites", folders, "Folders of NAME/model.onnx, or one such NAME");
  app.add_flag("--operators", operators, "Print the operator table: every input and its types");
  app.add_option("--lists", lists, "Lists of --known for the page");
  app.add_option("--write-docs", write_page, "Write the page of those lists and the operators");
  app.add_option("--check-docs", check_page, "Succeed when that page is what it should be");
  app.add_option("--filter", filter, "Only cases whose name contains this");
  app.add_option("--json", json, "Write every result to this file");
  app.add_option("--known", known, "Succeed when just the cases that this file lists do not pass");
  app.add_option("--write-known", write_known_to, "Write that list");
  app.add_flag("--list-failures", list, "Print every case that does not pass, with its reason");
  app.add_flag("--quiet", quiet, "Print the last line only");
  app.add_flag("--native", native_code, "Run pointwise programs as native code, not interpreted");
  app.add_flag("--in-process", in_process, "No child processes: for debuggers");
  app.add_option("--jobs", jobs, "Cases run side by side")->capture_default_str();
  app.add_option("--timeout", seconds, "Seconds a case may take")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  if (operators) {
    fmt::print("{}", operator_list());
    return 0;
  }
  if (!write_page.empty()) return page(lists, write_page, true);
  if (!check_page.empty()) return page(lists, check_page, false);
  if (folders.empty()) {
    fmt::print(stderr, "name a suite; see --help\n");
    return 2;
  }

  std::vector<Entry> entries;
  std::vector<std::filesystem::path> cases;
  for (const std::string& folder : folders) {
    const auto found = find_cases(folder);
    if (found.empty()) {
      fmt::print(stderr, "{}: no folder with a model.onnx here\n", folder);
      return 2;
    }
    for (const auto& path : found)
      if (path.filename().string().find(filter) != std::string::npos) {
        cases.push_back(path);
        entries.push_back({path, {}});
      }
  }
  if (in_process)
    for (size_t i = 0; i < cases.size(); ++i) entries[i].result = run_case(cases[i]);
  else
    run_isolated(cases, jobs, seconds,
                 [&](size_t i, CaseResult result) { entries[i].result = std::move(result); });

  if (!json.empty() && !write_json(entries, json)) {
    fmt::print(stderr, "{}: cannot be written\n", json);
    return 2;
  }
  if (list)
    print_failures(entries);
  else if (!quiet)
    print_groups(entries);
  if (!write_known_to.empty() && !write_known(entries, write_known_to)) return 2;
  const bool as_known = known.empty() || check_known(entries, known);
  print_summary(entries);
  if (!known.empty()) return as_known ? 0 : 1;
  return std::ranges::all_of(entries,
                             [](const Entry& e) { return e.result.outcome == Outcome::passed; })
             ? 0
             : 1;
}
