// Compiles a model so that its results are as near to f32 as its precision promises.
#pragma once

#include "compiler/compile.h"
#include "support/function_ref.h"

namespace hologram::compiler {

// The largest error of results, of their range, that a precision may make: 1e-4 in `fast`, 2e-2 in
// `bf16`; 0 where nothing is promised.
double promised_error(Precision precision);

struct Within {
  std::vector<std::byte> archive;
  size_t widened = 0;
  double error = 0;  // of that archive, as `error_of` gave it
};

// The archive with the fewest of the first products widened (none, an eighth, a quarter, a half,
// all) whose error is at most `limit`; with all of them where none is. `error_of` runs an archive
// on inputs of the caller's and compares the results with those in f32. options.report, where not
// null, is of that archive.
Result<Within> compile_within(const std::filesystem::path& model, CompileOptions options,
                              double limit,
                              FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of);

}  // namespace hologram::compiler
