#include "lang/compile.h"
#include "lang/json/json.h"
#include "lang/lower.h"

namespace hologram::lang {

Result<CompiledKernel> compile_json(std::string_view json) {
  HOLOGRAM_TRY(ir::Kernel kernel, read_json(json));
  HOLOGRAM_TRY(isa::Program program, lower(kernel));
  HOLOGRAM_TRY(auto launch, lower_launch(kernel));
  return CompiledKernel{std::move(kernel), std::move(program), std::move(launch)};
}

}  // namespace hologram::lang
