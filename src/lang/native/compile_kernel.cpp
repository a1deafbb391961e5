#include "lang/native/compile_kernel.h"

#include "codegen/compile.h"

namespace hologram {

namespace lang {

Result<runtime::KernelFunction> make_native(const CompiledKernel& kernel) {
  runtime::KernelFunction::Parts parts;
  HOLOGRAM_TRY(const codegen::Target target, codegen::Target::host());
  HOLOGRAM_TRY(isa::NativeCode code, codegen::compile(kernel.program, target));
  parts.program = kernel.program;
  parts.native.push_back(std::move(code));
  for (const ir::Param& p : kernel.ir.params) parts.ranks.push_back(p.rank);
  parts.launch = kernel.launch;
  return runtime::KernelFunction::create(std::move(parts));
}

}  // namespace lang

Result<runtime::KernelFunction> compile_kernel(std::string_view source, std::string_view kernel,
                                               std::string_view file) {
  HOLOGRAM_TRY(const std::vector<lang::CompiledKernel> kernels, lang::compile_source(source, file));
  std::string names;
  for (const lang::CompiledKernel& k : kernels) {
    if (k.ir.name == kernel || (kernel.empty() && kernels.size() == 1)) return lang::make_native(k);
    names += (names.empty() ? "" : ", ") + k.ir.name;
  }
  if (kernel.empty())
    return fail(ErrorCode::invalid_argument, "{} has several kernels: say which of {}", file,
                names);
  return fail(ErrorCode::not_found, "{} has no kernel '{}'; it has {}", file, kernel, names);
}

}  // namespace hologram
