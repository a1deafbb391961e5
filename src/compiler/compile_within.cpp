#include "compiler/compile_within.h"

#include <algorithm>
#include <cmath>

namespace hologram::compiler {
namespace {

// Neighbouring products that are widened together, so that a deep network is compiled a bounded
// number of times.
constexpr size_t kGroups = 16;

struct Group {
  size_t first, past;
  double error;  // where only these are narrow
};

}  // namespace

double promised_error(Precision precision) {
  return precision == Precision::fast ? 1e-4 : precision == Precision::bf16 ? 2e-2 : 0.0;
}

Result<Within> compile_within(const std::filesystem::path& model, CompileOptions options,
                              double limit,
                              FunctionRef<Result<double>(const std::vector<std::byte>&)> error_of) {
  CompileReport own;
  if (!options.report) options.report = &own;
  Within found;
  const auto attempt = [&]() -> Status {
    *options.report = {};
    found.widened =
        static_cast<size_t>(std::count(options.widened.begin(), options.widened.end(), true));
    HOLOGRAM_TRY(found.archive, compile_onnx(model, options));
    HOLOGRAM_TRY(found.error, error_of(found.archive));
    return {};
  };
  HOLOGRAM_CHECK(attempt());
  const size_t products = options.report->narrow_steps;
  if (found.error <= limit || products == 0) return found;

  // Most often what early products round off is enlarged most.
  for (const size_t eighths : {1, 2, 4}) {
    options.widened.assign((products * eighths + 7) / 8, true);
    HOLOGRAM_CHECK(attempt());
    if (found.error <= limit) return found;
  }
  std::vector<Group> groups;
  const size_t count = std::min(products, kGroups);
  for (size_t g = 0; g < count; ++g) {
    groups.push_back({products * g / count, products * (g + 1) / count, 0});
    options.widened.assign(products, true);
    for (size_t i = groups[g].first; i < groups[g].past; ++i) options.widened[i] = false;
    HOLOGRAM_CHECK(attempt());
    groups[g].error = std::isnan(found.error) ? HUGE_VAL : found.error;
  }
  std::ranges::stable_sort(groups, {}, &Group::error);
  // Errors of independent origin add up by their squares, if nothing enlarges them together.
  size_t narrow = 0;
  for (double sum = 0; narrow < count; ++narrow) {
    sum += groups[narrow].error * groups[narrow].error;
    if (!(sum <= limit * limit)) break;
  }
  for (;; --narrow) {
    options.widened.assign(products, true);
    for (size_t g = 0; g < narrow; ++g)
      for (size_t i = groups[g].first; i < groups[g].past; ++i) options.widened[i] = false;
    HOLOGRAM_CHECK(attempt());
    if (found.error <= limit || narrow == 0) return found;
  }
}

}  // namespace hologram::compiler
