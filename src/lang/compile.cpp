#include "lang/compile.h"

#include <algorithm>
#include <array>
#include <limits>

#include "isa/interpreter.h"
#include "lang/checker.h"
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
    const Position begin =
        std::ranges::find(module.functions, kernel.name, &ast::Function::name)->at;
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
