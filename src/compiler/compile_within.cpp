#include "compiler/compile_within.h"

namespace hologram::compiler {

double promised_error(Precision precision) {
  return precision == Precision::fast ? 1e-4 : precision == Precision::bf16 ? 2e-2 : 0.0;
}

Result<Within> compile_within(const std::filesystem::path& model, CompileOptions options,
                              double limit,
                              FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of) {
  CompileReport own;
  if (!options.report) options.report = &own;
  Within found;
  size_t products = 0;
  for (const size_t eighths : {0, 1, 2, 4, 8}) {
    options.widened = (products * eighths + 7) / 8;
    *options.report = {};
    HOLOGRAM_TRY(found.archive, compile_onnx(model, options));
    if (eighths == 0) products = options.report->narrow_steps;
    found.widened = options.widened;
    HOLOGRAM_TRY(found.error, error_of(found.archive));
    if (found.error <= limit || products == 0) break;
  }
  return found;
}

}  // namespace hologram::compiler
