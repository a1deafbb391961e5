// `hologram quality`: what a HoloTensor file is worth at every size.
#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "holotensor/model/quality_report.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

struct QualityArguments {
  std::string file, svg, title;
};

Status show_quality(const QualityArguments& arguments) {
  using namespace holotensor;
  HOLOGRAM_TRY(const auto report, quality_report(std::filesystem::path(arguments.file)));
  fmt::print("{}", report_table(report));
  if (arguments.svg.empty()) return {};
  const std::string title = arguments.title.empty()
                                ? std::filesystem::path(arguments.file).filename().string()
                                : arguments.title;
  HOLOGRAM_CHECK(write_file(arguments.svg, report_svg(report, title)));
  fmt::print("\nplot: {}\n", arguments.svg);
  return {};
}

}  // namespace

void add_quality(Commands& commands) {
  auto arguments = std::make_shared<QualityArguments>();
  CLI::App* command =
      commands.add("quality", "Show what a .ht file is worth at every size, as measured",
                   "  hologram quality model.ht\n"
                   "  hologram quality model.ht --svg model.svg",
                   [arguments] { return show_quality(*arguments); });
  command->add_option("file", arguments->file, "A .ht file")->required();
  command->add_option("--svg", arguments->svg, "Also write a rate-distortion plot here");
  command->add_option("--title", arguments->title, "Of the plot (default: the file's name)");
}

}  // namespace hologram::cli
