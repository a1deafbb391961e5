// `hologram inspect`: what an archive or a model holds.
#include <memory>

#include "archive/kernels.h"
#include "cli/command.h"
#include "cli/inspect/describe.h"
#include "cli/inspect/text.h"
#include "cli/tensor_input.h"
#include "onnx/model.h"
#include "runtime/bundle/kernel_bundle.h"
#include "support/file.h"

namespace hologram::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  fs::path file, html;
  bool json = false, dot = false, profile = false;
  InputOptions inputs{.random = true};
};

Status inspect_model(const Arguments& arguments) {
  if (arguments.json || !arguments.html.empty())
    return fail(ErrorCode::invalid_argument,
                "'{}' is not compiled: --json and --html show archives (hologram compile {})",
                arguments.file.string(), arguments.file.string());
  HOLOGRAM_TRY(const graph::Graph graph, onnx::read_model(arguments.file));
  fmt::print("{}", arguments.dot ? graph.to_dot() : graph.to_text());
  return {};
}

// The kernels of an archive that has no plan.
Status inspect_kernels(const Arguments& arguments, const std::vector<std::byte>& bytes) {
  if (arguments.json || arguments.dot || !arguments.html.empty())
    return fail(ErrorCode::invalid_argument, "'{}' holds kernels and no plan to draw",
                arguments.file.string());
  HOLOGRAM_TRY(const auto bundle, runtime::KernelBundle::open(bytes));
  fmt::print("{}: {} kernels\n", arguments.file.string(), bundle.size());
  for (size_t i = 0; i < bundle.size(); ++i) fmt::print("  {}\n", bundle.name(i));
  return {};
}

Status inspect(const Arguments& arguments) {
  if (arguments.json + arguments.dot + !arguments.html.empty() > 1)
    return fail(ErrorCode::invalid_argument, "choose one of --json, --dot and --html");
  if (arguments.file.extension() == ".onnx") return inspect_model(arguments);
  auto opened = archive::Archive::open(arguments.file);
  if (!opened)
    if (const auto kernels = archive::read_kernels(arguments.file); kernels)
      return inspect_kernels(arguments, *kernels);
  HOLOGRAM_TRY(archive::Archive archive, std::move(opened));
  auto document = describe(archive, arguments.file.filename().string());
  if (arguments.profile) {
    HOLOGRAM_TRY(const runtime::Session session, runtime::Session::open(std::move(archive)));
    HOLOGRAM_TRY(const auto inputs, read_inputs(session.inputs(), arguments.inputs));
    std::vector<runtime::StepTime> times;
    HOLOGRAM_CHECK(session.run(inputs));  // the first run also pays for touching the pages
    HOLOGRAM_CHECK(session.profile(inputs, times));
    add_times(document, times);
  }
  if (!arguments.html.empty()) {
    HOLOGRAM_CHECK(write_file(arguments.html, std::string_view(inspection_page(document))));
    fmt::print("{} written: open it in a browser\n", arguments.html.string());
    return {};
  }
  fmt::print("{}",
             arguments.json
                 ? document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
             : arguments.dot ? inspection_dot(document)
                             : inspection_text(document));
  return {};
}

}  // namespace

void add_inspect(Commands& commands) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      commands.add("inspect", "Show what an archive holds",
                   "  hologram inspect resnet50.holo\n"
                   "  hologram inspect resnet50.holo --html resnet50.html --profile\n"
                   "  hologram inspect resnet50.holo --json | jq '.plan.steps[].kernel'\n"
                   "  hologram inspect model.onnx --dot | dot -Tsvg > model.svg",
                   [arguments] { return inspect(*arguments); });
  command->add_option("file", arguments->file, "A .holo archive, or an .onnx model")->required();
  command->add_flag("--json", arguments->json, "Everything, as JSON");
  command->add_option("--html", arguments->html,
                      "Write one page with the graph, a timeline and the memory plan drawn");
  command->add_flag("--dot", arguments->dot, "The graph for Graphviz");
  command->add_flag("--profile", arguments->profile,
                    "Run once on random inputs and show the time of each step");
  command->add_option("--shape", arguments->inputs.shapes,
                      "NAME=1,3,224,224, for --profile where a shape is open");
}

}  // namespace hologram::cli
