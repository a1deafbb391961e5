// The front end as one call: Python source to checked IR, and to programs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/launch.h"
#include "isa/program.h"
#include "lang/ir.h"
#include "support/result.h"

namespace hologram::lang {

struct CompiledKernel {
  ir::Kernel ir;
  isa::Program program;
  // What the kernel says about its launch, see lower_launch(); nothing: one thread.
  std::optional<isa::Program> launch = {};
};

// Every kernel of a source, in its order. A rejected source is parse_error whose message is all of
// its diagnostics, ready to print; `file` is the name they use, and where imports of other kernel
// files start from; a name in angle brackets is no file. A source without a kernel is
// rejected too. Safe to call from several threads.
Result<std::vector<CompiledKernel>> compile_source(std::string_view source,
                                                   std::string_view file = "<source>");
// The same for a file of the JSON IR: one kernel.
Result<CompiledKernel> compile_json(std::string_view json);

// The grid and block a kernel asks for with these arguments (all of the program's, in its order):
// a thread each for what launch() says, rounded up to whole blocks. A kernel that does not say runs
// as one thread.
Result<isa::LaunchShape> default_launch(const CompiledKernel& kernel,
                                        std::span<const isa::Argument> arguments);

}  // namespace hologram::lang
