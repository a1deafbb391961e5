#include "lang/compile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>

#include "isa/interpreter.h"
#include "lang/checker.h"
#include "lang/lower.h"
#include "lang/parser.h"
#include "lang/validate.h"
#include "support/file.h"

namespace hologram::lang {

namespace {

// A file may import from a file that imports, but not in circles.
constexpr int kDeepestImport = 8;

Result<std::vector<CompiledKernel>> compile(std::string_view source, std::string_view file,
                                            int depth);

// The kernels that `module` takes over from other files, under their names here.
std::vector<ir::Kernel> import_kernels(const ast::Module& module, std::string_view file, int depth,
                                       Diagnostics& diagnostics) {
  std::vector<ir::Kernel> kernels;
  std::map<std::string, std::vector<CompiledKernel>> read;
  for (const ast::Import& import : module.imports) {
    if (file.starts_with('<')) {
      diagnostics.add(import.at, "a source that is no file has no files beside it to import from",
                      "write the kernel here, or compile a file");
      continue;
    }
    const std::string path =
        (std::filesystem::path(file).parent_path() / import.file).lexically_normal().string();
    if (!read.contains(path)) {
      const auto text = read_text_file(path);
      if (!text || depth >= kDeepestImport) {
        diagnostics.add(import.at,
                        text ? fmt::format("'{}' is imported in a circle", path)
                             : fmt::format("there is no file '{}' to import from", path),
                        text ? "" : "one dot is this file's folder, each more the folder above");
        continue;
      }
      auto compiled = compile(*text, path, depth + 1);
      if (!compiled) {
        diagnostics.add(import.at, fmt::format("'{}' is rejected itself: {}", path,
                                               compiled.error().message().substr(
                                                   0, compiled.error().message().find('\n'))));
        continue;
      }
      read[path] = *std::move(compiled);
    }
    const auto found = std::ranges::find(read[path], import.name,
                                         [](const CompiledKernel& k) { return k.ir.name; });
    const auto is_taken = [&](const auto& other) { return other.name == import.as; };
    if (found == read[path].end()) {
      std::string names;
      for (const CompiledKernel& k : read[path]) names += (names.empty() ? "" : ", ") + k.ir.name;
      diagnostics.add(import.at, fmt::format("'{}' has no kernel '{}'", path, import.name),
                      "it has " + names);
    } else if (std::ranges::any_of(module.functions, is_taken) ||
               std::ranges::any_of(kernels, is_taken)) {
      diagnostics.add(import.at, fmt::format("'{}' is already a function of this file", import.as),
                      "import it as another name");
    } else {
      kernels.push_back(found->ir);
      kernels.back().name = import.as;
    }
  }
  return kernels;
}

Result<std::vector<CompiledKernel>> compile(std::string_view source, std::string_view file,
                                            int depth) {
  Diagnostics diagnostics(file, source);
  const ast::Module module = parse(source, diagnostics);
  std::vector<ir::Kernel> kernels = check(module, diagnostics);
  std::vector<ir::Kernel> imported = import_kernels(module, file, depth, diagnostics);
  if (!diagnostics.empty()) return std::unexpected(diagnostics.error());
  kernels.insert(kernels.begin(), std::make_move_iterator(imported.begin()),
                 std::make_move_iterator(imported.end()));
  if (kernels.empty()) {
    diagnostics.add({1, 1}, "this file has no kernel", "a kernel is a function without @inline");
    return std::unexpected(diagnostics.error());
  }
  std::vector<CompiledKernel> out;
  for (ir::Kernel& kernel : kernels) {
    const auto function = std::ranges::find(module.functions, kernel.name, &ast::Function::name);
    const Position begin = function == module.functions.end() ? Position{} : function->at;
    if (const uint64_t size = expanded_size(kernel); size > kMaximumSize) {
      diagnostics.add(begin,
                      fmt::format("kernel '{}' is too large: {} operations with its helpers "
                                  "written out, at most {}",
                                  kernel.name, size, kMaximumSize),
                      "call helpers in a loop rather than many times, or make several kernels");
      continue;
    }
    // The checker's own work is held to the rules that any front end's is.
    if (Status valid = validate(kernel); !valid)
      return fail(ErrorCode::internal, "{}: {}", file, valid.error().message());
    Position where{0, 0};
    auto program = lower(kernel, &where);
    if (!program && where.line != 0) {
      std::string message = program.error().message();
      if (const size_t at = message.find("): "); at != std::string::npos) message.erase(0, at + 3);
      diagnostics.add(where, std::move(message),
                      "let every thread of the block get here, for instance by moving it out of "
                      "the if or loop");
      continue;
    }
    if (!program) {
      diagnostics.add(begin, program.error().message(), "make several kernels of it");
      continue;
    }
    HOLOGRAM_TRY(auto launch, lower_launch(kernel));
    out.push_back({std::move(kernel), *std::move(program), std::move(launch)});
  }
  if (!diagnostics.empty()) return std::unexpected(diagnostics.error());
  return out;
}

}  // namespace

Result<std::vector<CompiledKernel>> compile_source(std::string_view source, std::string_view file) {
  return compile(source, file, 0);
}

Result<isa::LaunchShape> default_launch(const CompiledKernel& kernel,
                                        std::span<const isa::Argument> arguments) {
  isa::LaunchShape shape;
  if (!kernel.launch) return shape;
  std::array<uint64_t, 6> sizes{};
  std::vector<isa::Argument> all(arguments.begin(), arguments.end());
  // `launch__` follows the kernel's own parameters; the extents come after it.
  all.insert(all.begin() + static_cast<ptrdiff_t>(kernel.ir.params.size()),
             isa::Argument::array(std::span<uint64_t>(sizes)));
  HOLOGRAM_CHECK(isa::interpret(*kernel.launch, {}, all));
  for (size_t axis = 0; axis < 3; ++axis) {
    const uint64_t threads = sizes[axis], block = sizes[3 + axis];
    const uint64_t blocks = threads / block + (threads % block != 0);
    shape.block[axis] = static_cast<uint32_t>(block);
    if (blocks > std::numeric_limits<uint32_t>::max())
      return fail(ErrorCode::out_of_range, "kernel '{}': {} threads along axis {} are too many",
                  kernel.ir.name, threads, axis);
    shape.grid[axis] = static_cast<uint32_t>(blocks);
  }
  return shape;
}

}  // namespace hologram::lang
