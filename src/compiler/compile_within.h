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
  bool f32 = false;  // all of it, since that is faster
};

// An archive whose error is at most `limit`: with no product widened where that is enough, else
// with the first eighth, quarter or half of them, else with all but those that add least to the
// error; with all of them where even so it is larger. By one grade, or by two where one is not
// enough for all. Where that is not faster than f32 (models of small steps) it is f32 after all.
//
// `error_of` runs an archive on inputs of the caller's and compares the results with those in f32;
// it is asked some 25 times at most. `faster` tells whether the first archive takes less time than
// the second. options.report, where not null, is of the archive that is returned.
Result<Within> compile_within(
    const std::filesystem::path& model, CompileOptions options, double limit,
    FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of,
    FunctionRef<Result<bool>(const std::vector<std::byte>&, const std::vector<std::byte>&)> faster);

}  // namespace hologram::compiler
