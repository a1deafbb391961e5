// `hologram quality`: what a HoloTensor file is worth at every size.
#include <filesystem>
#include <memory>
#include <string>

#include "archive/archive.h"
#include "cli/command.h"
#include "holotensor/model/quality_report.h"
#include "holotensor/reader.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

struct QualityArguments {
  std::string file, svg, title;
};

// A .ht file, or the weights of a .holo archive that was compiled with --weights.
Result<holotensor::QualityReport> report_of(const std::filesystem::path& path) {
  if (path.extension() != ".holo") return holotensor::quality_report(path);
  HOLOGRAM_TRY(const archive::Archive archive, archive::Archive::open(path));
  if (archive.weights().empty())
    return fail(ErrorCode::invalid_argument,
                "{}: its constants are plain, and exact; compile with --weights to store them as "
                "fragments",
                path.string());
  HOLOGRAM_TRY(const auto reader,
               holotensor::Reader::from_memory({archive.weights(), archive.owner()}));
  return holotensor::quality_report(reader.tensors(), reader.file_size(), reader.overhead());
}

Status show_quality(const QualityArguments& arguments) {
  using namespace holotensor;
  HOLOGRAM_TRY(const auto report, report_of(arguments.file));
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
  CLI::App* command = commands.add(
      "quality",
      "Show what a .ht file, or an archive's weights, are worth at every size, as measured",
      "  hologram quality model.ht\n"
      "  hologram quality model.holo\n"
      "  hologram quality model.ht --svg model.svg",
      [arguments] { return show_quality(*arguments); });
  command
      ->add_option("file", arguments->file,
                   "A .ht file, or a .holo archive compiled with --weights")
      ->required();
  command->add_option("--svg", arguments->svg, "Also write a rate-distortion plot here");
  command->add_option("--title", arguments->title, "Of the plot (default: the file's name)");
}

}  // namespace hologram::cli
