#include "lang/compile.h"

#include "lang/checker.h"
#include "lang/json.h"
#include "lang/lower.h"
#include "lang/parser.h"
#include "lang/validate.h"

namespace hologram::lang {

Result<std::vector<CompiledKernel>> compile_source(std::string_view source, std::string_view file) {
  Diagnostics diagnostics(file, source);
  const ast::Module module = parse(source, diagnostics);
  std::vector<ir::Kernel> kernels = check(module, diagnostics);
  if (!diagnostics.empty()) return std::unexpected(diagnostics.error());
  if (kernels.empty()) {
    diagnostics.add({1, 1}, "this file has no kernel", "a kernel is a function without @inline");
    return std::unexpected(diagnostics.error());
  }
  std::vector<CompiledKernel> out;
  for (ir::Kernel& kernel : kernels) {
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
    if (!program) return std::unexpected(std::move(program).error());
    out.push_back({std::move(kernel), *std::move(program)});
  }
  if (!diagnostics.empty()) return std::unexpected(diagnostics.error());
  return out;
}

Result<CompiledKernel> compile_json(std::string_view json) {
  HOLOGRAM_TRY(ir::Kernel kernel, read_json(json));
  HOLOGRAM_TRY(isa::Program program, lower(kernel));
  return CompiledKernel{std::move(kernel), std::move(program)};
}

}  // namespace hologram::lang
