#include <memory>

#include "cli/kernels.h"
#include "cli/kernels_compile.h"
#include "runtime/embedded_bundle.h"
#include "runtime/kernel_function.h"

namespace hologram::cli {
namespace {

// The first line of a doc string.
std::string summary(const std::string& doc) {
  const size_t begin = doc.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  return doc.substr(begin, doc.find('\n', begin) - begin);
}

std::string signature(const lang::ir::Kernel& kernel) {
  std::string text = kernel.name + "(";
  for (const lang::ir::Param& p : kernel.params) {
    if (&p != &kernel.params[0]) text += ", ";
    text += fmt::format("{}: {}", p.name, name_of(p.type));
    if (p.is_array()) text += "[" + std::string(p.rank - 1, ',') + "]";
  }
  return text + ")";
}

Status list(const std::vector<std::string>& paths) {
  if (paths.empty()) {
    // The ops' own programs have names with a dot or a type; the library's kernels have launches.
    const runtime::KernelBundle& bundle = runtime::embedded_bundle();
    size_t count = 0;
    for (size_t i = 0; i < bundle.size(); ++i) {
      const std::string name(bundle.name(i));
      if (!bundle.find(name + "_launch")) continue;
      HOLOGRAM_TRY(const auto kernel, runtime::KernelFunction::from_bundle(bundle, name, false));
      fmt::print("{}\n", kernel.signature());
      ++count;
    }
    fmt::print("{} standard kernels; 'hologram kernels list FOLDER' lists sources\n", count);
    return {};
  }
  HOLOGRAM_TRY(const auto files, find_kernel_sources(paths));
  for (const auto& file : files) {
    HOLOGRAM_TRY(const auto kernels, compile_kernel_file(file));
    fmt::print("{}\n", file.string());
    for (const lang::CompiledKernel& k : kernels) {
      fmt::print("  {}\n", signature(k.ir));
      if (const std::string line = summary(k.ir.doc); !line.empty()) fmt::print("      {}\n", line);
    }
  }
  return {};
}

}  // namespace

void add_kernels_list(Commands& commands, CLI::App* parent) {
  const auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* command = commands.add(
      "list", "List the standard kernels, or those of some files",
      "  hologram kernels list\n  hologram kernels list kernels/onnx",
      [paths] { return list(*paths); }, parent);
  command->add_option("paths", *paths, "kernel files, or folders of them")->type_name("DIR|FILE");
}

void add_kernels(Commands& commands) {
  CLI::App* group = commands.group("kernels", "Kernels written in Python: compile, run, list");
  add_kernels_compile(commands, "compile", group);
  add_kernels_run(commands, group);
  add_kernels_list(commands, group);
}

}  // namespace hologram::cli
